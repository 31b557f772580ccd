//! The payment provider's signature: `Flashsale-Signature: t=<unix seconds>,v1=<hex>`, where the hex is
//! HMAC-SHA256 of `<t>.<body>` under the shared secret.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{Problem, ProblemCode};
use crate::config::PaymentConfig;
use crate::domain::UnixMillis;
use crate::limits::PAYMENT_SIGNATURE_TOLERANCE_MS;

/// The header that carries the signature.
pub const SIGNATURE_HEADER: &str = "flashsale-signature";

type HmacSha256 = Hmac<Sha256>;

/// Checks payment signatures.
pub struct SignatureVerifier {
    mac: HmacSha256,
}

impl SignatureVerifier {
    /// A verifier with the provider's secret.
    #[must_use]
    pub fn new(config: &PaymentConfig) -> Self {
        Self {
            mac: mac_of(config.secret.expose().as_bytes()),
        }
    }

    /// Checks a header against the body as it came; what is wrong is `unauthenticated` with a reason.
    pub fn check(&self, header: Option<&str>, body: &[u8], now: UnixMillis) -> Result<(), Problem> {
        let header = header.ok_or_else(|| refused("it is missing", "缺失"))?;
        let (mut seconds, mut signatures) = (None, Vec::new());
        for part in header.split(',') {
            match part.trim().split_once('=') {
                Some(("t", text)) => seconds = text.parse::<u64>().ok(),
                Some(("v1", text)) => signatures.extend(hex::decode(text).ok()),
                _ => {}
            }
        }
        let seconds = seconds.ok_or_else(|| {
            refused(
                "it has no t=<unix seconds>; expected t=<unix seconds>,v1=<hex>",
                "缺少 t=<unix 秒>;格式应为 t=<unix 秒>,v1=<十六进制>",
            )
        })?;
        let signed_at = UnixMillis::new(seconds.saturating_mul(1_000));
        if signed_at.since(now).max(now.since(signed_at)) > PAYMENT_SIGNATURE_TOLERANCE_MS {
            return Err(refused(
                "its time is more than 5 minutes from ours",
                "时间戳与服务器时间相差超过 5 分钟",
            ));
        }
        let mut mac = self.mac.clone();
        mac.update(format!("{seconds}.").as_bytes());
        mac.update(body);
        // `verify_slice` compares in constant time. Several v1 parts: the provider is rotating its secret.
        if signatures
            .iter()
            .any(|given| mac.clone().verify_slice(given).is_ok())
        {
            Ok(())
        } else {
            Err(refused(
                "no v1=<hex> of it is the HMAC-SHA256 of <t>.<body> under the shared secret",
                "没有任何 v1=<十六进制> 与 <t>.<body> 的 HMAC-SHA256 相符",
            ))
        }
    }
}

/// The header value for a body, as a provider makes it.
#[must_use]
pub fn sign(secret: &str, body: &[u8], now: UnixMillis) -> String {
    let seconds = now.get() / 1_000;
    let mut mac = mac_of(secret.as_bytes());
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body);
    format!(
        "t={seconds},v1={}",
        hex::encode(mac.finalize().into_bytes())
    )
}

fn mac_of(secret: &[u8]) -> HmacSha256 {
    HmacSha256::new_from_slice(secret).expect("HMAC takes a key of any length")
}

fn refused(en: &str, zh: &str) -> Problem {
    Problem::new(ProblemCode::Unauthenticated)
        .detail(
            format!("Flashsale-Signature: {en}."),
            format!("Flashsale-Signature 无效:{zh}。"),
        )
        .header("www-authenticate", "Flashsale-Signature")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    const NOW: UnixMillis = UnixMillis::new(1_700_000_000_500);

    fn verifier() -> SignatureVerifier {
        SignatureVerifier::new(&PaymentConfig {
            secret: Secret::new("whsec".into()),
        })
    }

    #[test]
    fn a_fresh_signature_of_this_very_body_is_accepted() {
        let header = sign("whsec", b"{}", NOW);
        assert!(verifier().check(Some(&header), b"{}", NOW).is_ok());
        let rotated = format!("{header},v1=00ff");
        assert!(verifier().check(Some(&rotated), b"{}", NOW).is_ok());
        // A fixed value, made by: printf '1700000000.{}' | openssl dgst -sha256 -hmac whsec
        assert_eq!(
            header,
            "t=1700000000,v1=7d44587dddbaf4c7f70fef20f48cd594834ffea1641e3ac227b84408298738af"
        );
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let good = sign("whsec", b"{}", NOW);
        let old = sign("whsec", b"{}", NOW.minus(301_000));
        let early = sign("whsec", b"{}", NOW.plus(302_000));
        let foreign = sign("other", b"{}", NOW);
        for (header, body, part) in [
            (None, "{}", "missing"),
            (Some("v1=00"), "{}", "no t="),
            (Some("t=soon,v1=00"), "{}", "no t="),
            (Some(old.as_str()), "{}", "5 minutes"),
            (Some(early.as_str()), "{}", "5 minutes"),
            (Some("t=18446744073709551615,v1=00"), "{}", "5 minutes"),
            (Some(foreign.as_str()), "{}", "HMAC"),
            (Some(good.as_str()), "{ }", "HMAC"),
            (Some("t=1700000000"), "{}", "HMAC"),
        ] {
            let problem = verifier().check(header, body.as_bytes(), NOW).unwrap_err();
            assert_eq!(problem.code(), ProblemCode::Unauthenticated);
            let (_, detail) = problem.title_and_detail(super::super::Language::En);
            assert!(detail.contains(part), "{header:?}: {detail}");
        }
    }
}
