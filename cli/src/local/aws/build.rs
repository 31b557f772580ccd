//! `sam build` of the real template, in a quicker profile, and only when something changed.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use super::run;
use crate::local::{
    LocalError,
    process::{io_error, tool},
};

/// What the functions are made of, relative to the repository.
const SOURCES: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    "template.yaml",
    "shared",
    "functions",
    "lua",
];

/// A release build of eight binaries with thin LTO takes many minutes on two cores; behaviour is the same
/// without. The host's own linker and C compiler, since the local AWS runs the binaries right here.
const QUICK: [(&str, &str); 6] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_STRIP", "debuginfo"),
    ("CARGO_LAMBDA_COMPILER", "cargo"),
    ("SAM_CLI_TELEMETRY", "0"),
];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

fn work_dir() -> PathBuf {
    root().join("target/sam-local")
}

/// The template that `sam build` wrote, with the binaries beside it.
pub(super) fn built_template() -> PathBuf {
    work_dir().join("build/template.yaml")
}

/// `sam` itself, with `cargo-lambda` on its path.
pub(super) fn sam() -> Result<Command, LocalError> {
    let sam = tool(
        "sam",
        "sam/bin/sam",
        &[],
        "pip install aws-sam-cli==1.170.0, in an environment of its own",
    )?;
    let cargo_lambda = tool(
        "cargo-lambda",
        "local-aws/bin/cargo-lambda",
        &[],
        "pip install cargo-lambda",
    )?;
    let mut command = Command::new(&sam);
    command
        .current_dir(root())
        .env("PATH", run::path_with(&[&sam, &cargo_lambda]))
        .env("SAM_CLI_TELEMETRY", "0")
        // sam asks a server for newer versions of itself otherwise.
        .env("SAM_CLI_CHECK_VERSION", "0");
    Ok(command)
}

/// Builds all functions for this machine.
pub(super) fn functions(progress: &mut dyn FnMut(&str)) -> Result<(), LocalError> {
    let stamp_path = work_dir().join("stamp");
    let stamp = fingerprint()?;
    if built_template().is_file() && fs::read_to_string(&stamp_path).is_ok_and(|old| old == stamp) {
        progress("functions: unchanged since the last build");
        return Ok(());
    }
    fs::create_dir_all(work_dir()).map_err(io_error("create target/sam-local"))?;
    progress("functions: sam build (the first time takes some minutes)");
    let started = Instant::now();
    let mut command = sam()?;
    command
        .args(["build", "--config-env", "local", "--build-dir"])
        .arg(work_dir().join("build"))
        .arg("--parameter-overrides")
        .arg(format!("Arch={}", arch()))
        .env("CARGO_TARGET_DIR", work_dir().join("cargo"))
        .env("AWS_DEFAULT_REGION", super::REGION)
        .envs(QUICK);
    run::command(command, "sam build", shown, progress)?;
    progress(&format!(
        "functions: built in {} s",
        started.elapsed().as_secs()
    ));
    fs::write(&stamp_path, stamp).map_err(io_error("write the build's stamp"))
}

/// This machine's architecture, as the template's parameter names it.
pub(super) const fn arch() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x86_64"
    }
}

/// The lines of `sam build` that tell a person how far it is.
fn shown(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some((_, rest)) = line.split_once("Building codeuri: ") {
        let folder = rest.split(" runtime:").next().unwrap_or(rest);
        let name = Path::new(folder)
            .file_name()?
            .to_string_lossy()
            .into_owned();
        return Some(format!("functions: building {name}"));
    }
    (line.starts_with("Compiling ") || line.starts_with("Finished ")).then(|| format!("  {line}"))
}

/// A hash over every source file and over how it is built.
fn fingerprint() -> Result<String, LocalError> {
    let mut hasher = DefaultHasher::new();
    QUICK.hash(&mut hasher);
    arch().hash(&mut hasher);
    env!("CARGO_PKG_RUST_VERSION").hash(&mut hasher);
    for source in SOURCES {
        hash_path(&root().join(source), &mut hasher)?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_path(path: &Path, hasher: &mut DefaultHasher) -> Result<(), LocalError> {
    let failed = |path: &Path| io_error(format!("read {}", path.display()));
    if path.is_dir() {
        let mut entries = fs::read_dir(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed(path))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            entry.file_name().hash(hasher);
            hash_path(&entry.path(), hasher)?;
        }
        return Ok(());
    }
    fs::read(path).map_err(failed(path))?.hash(hasher);
    Ok(())
}
