//! Where Redis is.

use std::fmt;
use std::net::IpAddr;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::config::{REDIS_CA_FILE, REDIS_URL, RedisConfig};
use crate::domain::ParseError;

/// Where Redis is, and how to speak to it. Printing it shows hosts only: URLs may hold a password.
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://` or `rediss://` URLs; several only for a cluster, whose start nodes they are. None where there
    /// is no Redis: then every call fails, and says so.
    pub urls: Vec<String>,
    /// Whether it is a cluster.
    pub cluster: bool,
    /// A certificate authority to trust in place of the public ones, as PEM.
    pub ca_pem: Option<Vec<u8>>,
}

impl RedisSettings {
    const EXPECTED: &'static str = "rediss://[USER:PASSWORD@]HOST[:PORT], with ?cluster=true for cluster mode \
        and then several of them separated by commas; redis:// only for this very machine";

    /// The servers of a function's configuration, or none where it says so.
    pub fn from_config(config: &RedisConfig) -> Result<Self, ParseError> {
        let Some(url) = &config.url else {
            return Ok(Self::nowhere());
        };
        let ca_pem = config.ca_pem().map_err(|error| {
            ParseError::new(REDIS_CA_FILE, error.to_string(), "a PEM file to read")
        })?;
        Ok(Self::parse(REDIS_URL, url.expose())?.with_ca_pem(ca_pem))
    }

    /// No Redis at all, for a stage with queued sales only.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self {
            urls: Vec::new(),
            cluster: false,
            ca_pem: None,
        }
    }

    /// Parses the URLs in `text`. Plain `redis://` is refused for other machines: passwords and stock would
    /// travel in the clear, and a serverless `ElastiCache`, which is TLS only, just never answers.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, ParseError> {
        let bad = |problem: String| ParseError::new(field, problem, Self::EXPECTED);
        let mut cluster = false;
        let mut urls = Vec::new();
        for (at, url) in text.split(',').map(str::trim).enumerate() {
            let (base, query) = url.split_once('?').unwrap_or((url, ""));
            match query {
                "cluster=true" => cluster = true,
                "" | "cluster=false" => {}
                _ => return Err(bad(format!("URL {} has an unknown option", at + 1))),
            }
            let info = base
                .into_connection_info()
                .map_err(|_| bad(format!("URL {} is not a Redis URL", at + 1)))?;
            match info.addr() {
                ConnectionAddr::TcpTls {
                    insecure: false, ..
                } => {}
                ConnectionAddr::TcpTls { .. } => {
                    return Err(bad("TLS without a check of the certificate".to_owned()));
                }
                ConnectionAddr::Tcp(host, _) if is_loopback(host) => {}
                ConnectionAddr::Tcp(host, _) => {
                    return Err(bad(format!("redis:// (no TLS) to another machine, {host}")));
                }
                _ => return Err(bad(format!("URL {} is no TCP address", at + 1))),
            }
            urls.push(base.to_owned());
        }
        if urls.len() > 1 && !cluster {
            return Err(bad(format!("{} URLs without ?cluster=true", urls.len())));
        }
        Ok(Self {
            urls,
            cluster,
            ca_pem: None,
        })
    }

    /// The same, trusting this certificate authority in place of the public ones.
    #[must_use]
    pub fn with_ca_pem(mut self, pem: Option<Vec<u8>>) -> Self {
        self.ca_pem = pem;
        self
    }

    pub(super) fn uses_tls(&self) -> bool {
        self.urls.iter().any(|url| url.starts_with("rediss:"))
    }

    pub(super) fn nodes(&self) -> redis::RedisResult<Vec<ConnectionInfo>> {
        self.urls
            .iter()
            .map(|url| url.as_str().into_connection_info())
            .collect()
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&str> = self
            .urls
            .iter()
            .map(|url| url.rsplit(['@', '/']).next().unwrap_or_default())
            .collect();
        f.debug_struct("RedisSettings")
            .field("hosts", &hosts)
            .field("cluster", &self.cluster)
            .field("own_ca", &self.ca_pem.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::RedisSettings;

    #[test]
    fn takes_local_plain_urls_and_tls_ones_and_start_nodes() {
        let one = RedisSettings::parse("URL", "redis://127.0.0.1:6379").unwrap();
        assert!(!one.cluster);
        let two = RedisSettings::parse(
            "URL",
            "rediss://u:secret@a:1?cluster=true, rediss://u:secret@b:2",
        );
        let two = two.unwrap();
        assert!(two.cluster);
        assert_eq!(two.urls.len(), 2);
        assert_eq!(
            format!("{two:?}"),
            "RedisSettings { hosts: [\"a:1\", \"b:2\"], cluster: true, own_ca: false }"
        );
    }

    #[test]
    fn refuses_what_would_hang_or_leak_without_quoting_the_password() {
        for bad in [
            "",
            "redis://cache.example.com:6379",
            "redis://u:secret@10.0.0.1",
            "rediss://u:secret@a:1/#insecure",
            "rediss://u:secret@a:1?timeout=5",
            "rediss://a:1,rediss://b:2",
            "unix:///tmp/redis.sock",
            "http://localhost",
        ] {
            let error = RedisSettings::parse("FLASHSALE_REDIS_URL", bad).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
