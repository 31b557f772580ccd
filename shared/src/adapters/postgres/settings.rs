//! Where the database is, and the limits of a session.

use std::{path::Path, str::FromStr};

use sqlx::{
    ConnectOptions,
    postgres::{PgConnectOptions, PgSslMode},
};

use crate::config::DatabaseConfig;
use crate::limits::{SQL_IDLE_IN_TRANSACTION_MS, SQL_LOCK_MS, SQL_STATEMENT_MS};

/// A database URL that cannot be used. Never quotes the URL: it has the password in it.
#[derive(Debug, thiserror::Error)]
pub enum PgSettingsError {
    /// Not a URL of PostgreSQL.
    #[error("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE: {0}")]
    NotUrl(&'static str),
    /// Its parameters would decide on TLS or limits, which are decided here.
    #[error(
        "expected no parameters behind the database name: TLS and limits are not the URL's matter"
    )]
    Parameters,
    /// The file of certificates cannot be read.
    #[error("the CA file {path} cannot be read")]
    CaFile {
        /// Its path.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// Where the database is and how many connections this process may have.
#[derive(Clone)]
pub struct PgSettings {
    pub(super) options: PgConnectOptions,
    pub(super) connections_max: u32,
}

impl std::fmt::Debug for PgSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSettings")
            .field("host", &self.options.get_host())
            .field("database", &self.options.get_database())
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

impl PgSettings {
    /// The database of a function's configuration.
    pub fn from_config(
        config: &DatabaseConfig,
        connections_max: u32,
    ) -> Result<Self, PgSettingsError> {
        Self::parse(
            config.url.expose(),
            config.ca_file.as_deref(),
            connections_max,
        )
    }

    /// Parses a URL. A host other than loopback is spoken to over TLS only, its certificate and name
    /// checked against the public authorities and those in `ca_file`.
    pub fn parse(
        url: &str,
        ca_file: Option<&Path>,
        connections_max: u32,
    ) -> Result<Self, PgSettingsError> {
        let rest = url
            .strip_prefix("postgres://")
            .or_else(|| url.strip_prefix("postgresql://"))
            .ok_or(PgSettingsError::NotUrl("another scheme"))?;
        if rest.contains(['?', '#']) {
            return Err(PgSettingsError::Parameters);
        }
        let (user, place) = rest
            .rsplit_once('@')
            .ok_or(PgSettingsError::NotUrl("no user"))?;
        let (host, database) = place
            .split_once('/')
            .ok_or(PgSettingsError::NotUrl("no database"))?;
        if user.is_empty() || user.starts_with(':') {
            return Err(PgSettingsError::NotUrl("no user"));
        }
        if host.is_empty() || host.starts_with(':') {
            return Err(PgSettingsError::NotUrl("no host"));
        }
        if database.is_empty() || database.contains('/') {
            return Err(PgSettingsError::NotUrl("no database"));
        }
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| PgSettingsError::NotUrl("a part that cannot be read"))?;
        let options = if is_loopback(options.get_host()) {
            options.ssl_mode(PgSslMode::Disable)
        } else {
            with_tls(options, ca_file)?
        };
        // Startup parameters: no round trip of their own, and in force from the first statement.
        let options = options
            .application_name("flashsale")
            .options([
                ("statement_timeout", SQL_STATEMENT_MS),
                ("lock_timeout", SQL_LOCK_MS),
                (
                    "idle_in_transaction_session_timeout",
                    SQL_IDLE_IN_TRANSACTION_MS,
                ),
            ])
            // A failure is logged once, where it is answered.
            .disable_statement_logging();
        Ok(Self {
            options,
            connections_max,
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn with_tls(
    options: PgConnectOptions,
    ca_file: Option<&Path>,
) -> Result<PgConnectOptions, PgSettingsError> {
    let options = options.ssl_mode(PgSslMode::VerifyFull);
    let Some(path) = ca_file else {
        return Ok(options);
    };
    let pem = std::fs::read(path).map_err(|source| PgSettingsError::CaFile {
        path: path.display().to_string(),
        source,
    })?;
    Ok(options.ssl_root_cert_from_pem(pem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<PgSettings, PgSettingsError> {
        PgSettings::parse(url, None, 1)
    }

    #[test]
    fn other_hosts_are_spoken_to_over_checked_tls_only() {
        for (url, checked) in [
            ("postgres://u:p@db.example.com:5432/flashsale", true),
            ("postgresql://u:p@10.0.0.1/flashsale", true),
            ("postgres://u:p@127.0.0.1:5433/flashsale", false),
            ("postgres://u:p@localhost/flashsale", false),
        ] {
            let mode = parse(url).unwrap().options.get_ssl_mode();
            assert_eq!(matches!(mode, PgSslMode::VerifyFull), checked, "{url}");
        }
    }

    #[test]
    fn a_url_that_leaves_something_open_is_refused_without_its_password() {
        for url in [
            "",
            "mysql://u:hush@h/d",
            "postgres://u:hush@h",
            "postgres://u:hush@h/",
            "postgres://:hush@h/d",
            "postgres://u:hush@/d",
            "postgres://u:hush@:1/d",
            "postgres://u:hush@h:99999999/d",
            "postgres://u:hush@h/d?sslmode=disable",
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
        let settings = parse("postgres://u:hush@h/d").unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
    }

    #[test]
    fn a_missing_ca_file_is_named() {
        let ca = Path::new("no-such-file.pem");
        let error = PgSettings::parse("postgres://u:p@h/d", Some(ca), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the CA file no-such-file.pem cannot be read"
        );
    }
}
