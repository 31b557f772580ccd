//! Private servers on free loopback ports: started as child processes with directories of their own, and
//! stopped by process id when their handle is dropped. A server on a standard port is never touched.

pub mod aws;
pub mod dev;
pub mod postgres;
pub(crate) mod process;
pub mod proxy;
pub mod redis;

pub use process::{LocalError, Server, ServerCommand, free_port, tool};
