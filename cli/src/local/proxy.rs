//! A TCP proxy that makes a healthy server look broken: it loses replies, swallows them, delays them, leaves
//! sockets half-open, or takes no connections.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::process::{LocalError, io_error};

/// What the proxy does.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Passes everything.
    Pass,
    /// Forwards the requests, loses the reply of the next `count` ones that contain `request`, and closes
    /// that connection each time.
    LoseReply {
        /// Text of the requests meant, such as `EVALSHA`, so that a handshake is not hit.
        request: &'static str,
        /// How many.
        count: u32,
    },
    /// Forwards the requests; from the first one that contains `request`, its connection gives no reply any
    /// more but stays open. Hits `count` connections.
    SwallowReplies {
        /// See [`Self::LoseReply`].
        request: &'static str,
        /// How many connections.
        count: u32,
    },
    /// Passes everything, replies this much later.
    Delay(Duration),
    /// Closes new connections at once.
    RefuseConnects,
    /// Accepts new connections and never says anything.
    BlackHoleConnects,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<Option<SocketAddr>>,
    fault: Mutex<Fault>,
    accepted: AtomicU64,
    /// Connections with a lower number are half-open.
    dead_below: AtomicU64,
}

/// A running proxy; it ends with its handle.
#[derive(Debug)]
pub struct FaultProxy {
    shared: Arc<Shared>,
    port: u16,
    accepting: JoinHandle<()>,
}

/// What becomes of one chunk of replies.
enum Verdict {
    Forward,
    Discard,
    Close,
}

impl FaultProxy {
    /// Starts a proxy that passes everything to `port` on loopback.
    pub async fn start(port: u16) -> Result<Self, LocalError> {
        let proxy = Self::start_idle().await?;
        proxy.set_target(port);
        Ok(proxy)
    }

    /// Starts a proxy that has no server yet and closes connections until it has.
    pub async fn start_idle() -> Result<Self, LocalError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(io_error("open the proxy's port"))?;
        let address = listener
            .local_addr()
            .map_err(io_error("read the proxy's port"))?;
        let shared = Arc::new(Shared {
            target: Mutex::new(None),
            fault: Mutex::new(Fault::Pass),
            accepted: AtomicU64::new(0),
            dead_below: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self {
            shared,
            port: address.port(),
            accepting,
        })
    }

    /// Its port on loopback.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Sends new connections to `port` on loopback, as a changed DNS name does.
    pub fn set_target(&self, port: u16) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        *lock(&self.shared.target) = Some(address);
    }

    /// Does this from now on.
    pub fn set(&self, fault: Fault) {
        *lock(&self.shared.fault) = fault;
    }

    /// Makes every present connection half-open: it reads and never answers. New ones work.
    pub fn half_open_existing(&self) {
        let next = self.shared.accepted.load(Ordering::SeqCst);
        self.shared.dead_below.store(next, Ordering::SeqCst);
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many more replies or connections the present fault will hit.
    #[must_use]
    pub fn hits_left(&self) -> u32 {
        match *lock(&self.shared.fault) {
            Fault::LoseReply { count, .. } | Fault::SwallowReplies { count, .. } => count,
            Fault::Pass | Fault::Delay(_) | Fault::RefuseConnects | Fault::BlackHoleConnects => 0,
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(client, number, Arc::clone(&shared)));
    }
}

async fn serve(mut client: TcpStream, number: u64, shared: Arc<Shared>) {
    let fault = lock(&shared.fault).clone();
    match fault {
        Fault::RefuseConnects => return,
        Fault::BlackHoleConnects => {
            let mut ignored = [0; 1024];
            while client.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
            return;
        }
        Fault::Pass | Fault::LoseReply { .. } | Fault::SwallowReplies { .. } | Fault::Delay(_) => {}
    }
    let target = *lock(&shared.target);
    let Some(target) = target else { return };
    let Ok(mut server) = TcpStream::connect(target).await else {
        return;
    };
    // Nagle's algorithm would add delays of its own; without it the proxy is only slower, never wrong.
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let mut connection = Proxied {
        number,
        shared,
        hit: None,
    };
    let (mut requests, mut replies) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let alive = tokio::select! {
            read = client.read(&mut requests) => match read {
                Ok(size) if size > 0 => connection.forward_request(&requests[..size], &mut server).await,
                _ => false,
            },
            read = server.read(&mut replies) => match read {
                Ok(size) if size > 0 => connection.forward_reply(&replies[..size], &mut client).await,
                _ => false,
            },
        };
        if !alive {
            return;
        }
    }
}

/// One connection through the proxy.
struct Proxied {
    number: u64,
    shared: Arc<Shared>,
    /// Set once a request of this connection was hit.
    hit: Option<Hit>,
}

#[derive(Clone, Copy)]
enum Hit {
    CloseAtReply,
    SwallowFromNow,
}

impl Proxied {
    fn is_dead(&self) -> bool {
        self.number < self.shared.dead_below.load(Ordering::SeqCst)
    }

    async fn forward_request(&mut self, bytes: &[u8], server: &mut TcpStream) -> bool {
        if self.is_dead() {
            return true;
        }
        self.aim(bytes);
        server.write_all(bytes).await.is_ok()
    }

    /// Marks the connection when the present fault means this request.
    fn aim(&mut self, bytes: &[u8]) {
        if self.hit.is_some() {
            return;
        }
        let mut fault = lock(&self.shared.fault);
        let (request, count, hit) = match &mut *fault {
            Fault::LoseReply { request, count } => (request, count, Hit::CloseAtReply),
            Fault::SwallowReplies { request, count } => (request, count, Hit::SwallowFromNow),
            Fault::Pass | Fault::Delay(_) | Fault::RefuseConnects | Fault::BlackHoleConnects => {
                return;
            }
        };
        let wanted = request.as_bytes();
        if *count > 0 && bytes.windows(wanted.len()).any(|part| part == wanted) {
            *count -= 1;
            self.hit = Some(hit);
        }
    }

    async fn forward_reply(&mut self, bytes: &[u8], client: &mut TcpStream) -> bool {
        match self.verdict() {
            Verdict::Discard => true,
            Verdict::Close => false,
            Verdict::Forward => {
                let delay = match *lock(&self.shared.fault) {
                    Fault::Delay(delay) => delay,
                    Fault::Pass
                    | Fault::LoseReply { .. }
                    | Fault::SwallowReplies { .. }
                    | Fault::RefuseConnects
                    | Fault::BlackHoleConnects => Duration::ZERO,
                };
                tokio::time::sleep(delay).await;
                client.write_all(bytes).await.is_ok()
            }
        }
    }

    fn verdict(&self) -> Verdict {
        match self.hit {
            _ if self.is_dead() => Verdict::Discard,
            Some(Hit::SwallowFromNow) => Verdict::Discard,
            Some(Hit::CloseAtReply) => Verdict::Close,
            None => Verdict::Forward,
        }
    }
}
