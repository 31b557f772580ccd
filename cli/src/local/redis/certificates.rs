//! A certificate authority for one server.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::local::process::{LocalError, io_error, tool};

/// Makes a CA and a certificate for `localhost` in `dir`.
pub(super) fn make_certificates(dir: &Path) -> Result<(), LocalError> {
    fs::write(
        dir.join("san.cnf"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
    )
    .map_err(io_error("write the certificate's names"))?;
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ];
    openssl(
        dir,
        &[
            "req",
            "-x509",
            "-days",
            "2",
            "-subj",
            "/CN=flashsale test CA",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        ],
        &key,
    )?;
    openssl(
        dir,
        &[
            "req",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ],
        &key,
    )?;
    openssl(
        dir,
        &[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            "server.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
        ],
        &[
            "-CAcreateserial",
            "-extfile",
            "san.cnf",
            "-out",
            "server.crt",
        ],
    )
}

fn openssl(dir: &Path, args: &[&str], more: &[&str]) -> Result<(), LocalError> {
    let program = tool(
        "openssl",
        "openssl/openssl",
        &["/usr/bin"],
        "apt-get install openssl",
    )?;
    let output = Command::new(program)
        .args(args)
        .args(more)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(io_error("run openssl"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(LocalError::NotReady {
            program: "openssl".to_owned(),
            problem: format!("it ended with {}", output.status),
            log_tail: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
