//! A tiny HTTP server whose answer to each request is chosen by the test.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the server does with a request.
pub enum Reply {
    /// Answers with this status and JSON.
    Json(u16, Value),
    /// Passes the request on to a real server, then drops the reply and closes the connection.
    ForwardThenClose,
    /// Closes the connection.
    Close,
    /// Reads, and never answers.
    Silence,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `X-Amz-Target`.
    pub target: String,
    pub body: Value,
}

type Chooser = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

pub struct FaultServer {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl FaultServer {
    /// Starts it; `choose` gets the number of the request, from 0, and the request.
    pub async fn start(
        forward_to: Option<String>,
        choose: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let choose: Arc<Chooser> = Arc::new(choose);
        let (log, forward_to) = (seen.clone(), Arc::new(forward_to));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, choose, forward_to) = (log.clone(), choose.clone(), forward_to.clone());
                tokio::spawn(async move {
                    // The client going away in the middle is part of what is tested.
                    serve(stream, &log, &*choose, forward_to.as_deref())
                        .await
                        .ok();
                });
            }
        });
        Self { url, seen }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Seen>>,
    choose: &Chooser,
    forward_to: Option<&str>,
) -> io::Result<()> {
    while let Some((head, raw_body)) = read_request(&mut stream).await? {
        let seen = Seen {
            target: header(&head, "x-amz-target").unwrap_or_default(),
            body: serde_json::from_slice(&raw_body).unwrap_or(Value::Null),
        };
        let number = {
            let mut log = log.lock().unwrap();
            log.push(seen.clone());
            log.len() - 1
        };
        match choose(number, &seen) {
            Reply::Json(status, json) => {
                let json = json.to_string();
                let reply = format!(
                    "HTTP/1.1 {status} X\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\r\n{json}",
                    json.len()
                );
                stream.write_all(reply.as_bytes()).await?;
            }
            Reply::ForwardThenClose => {
                let to = forward_to.expect("a server to forward to");
                let mut real = TcpStream::connect(to.trim_start_matches("http://")).await?;
                real.write_all(head.as_bytes()).await?;
                real.write_all(&raw_body).await?;
                // Its first byte shows that it has done the work.
                real.read_u8().await?;
                return Ok(());
            }
            Reply::Close => return Ok(()),
            Reply::Silence => std::future::pending().await,
        }
    }
    Ok(())
}

/// The head with its blank line, and the body; `None` when the client closed.
async fn read_request(stream: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = header(&head, "content-length").and_then(|value| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok(Some((head, body)))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}
