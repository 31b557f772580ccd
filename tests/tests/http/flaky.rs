//! A ledger and a queue whose answers can be lost.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use shared::adapters::memory::{MemoryLedger, MemoryQueue};
use shared::domain::*;
use shared::ports::*;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The request never arrived.
    RequestLost,
    /// It was carried out; the answer was lost.
    ReplyLost,
    /// It was carried out, and the connection of the caller was told something of another time.
    Says(LateWord),
}

/// Answers of an attempt that came too late to mean anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateWord {
    TooLate,
    StaleEpoch,
    NotLoaded,
    Recovering,
}

/// A memory ledger with fates for its next deduct calls.
#[derive(Debug, Clone)]
pub struct FlakyLedger {
    pub inner: MemoryLedger,
    pub fates: Arc<Mutex<VecDeque<Fate>>>,
    pub away: Arc<AtomicBool>,
    /// There is no Redis in this stage.
    pub absent: Arc<AtomicBool>,
    pub deducts: Arc<AtomicU32>,
}

fn lost<T>(action: &'static str) -> LedgerResult<T> {
    Err(LedgerError::Unknown {
        action,
        source: "the wire was cut".into(),
    })
}

impl FlakyLedger {
    pub fn new(inner: MemoryLedger) -> Self {
        Self {
            inner,
            fates: Arc::default(),
            away: Arc::default(),
            absent: Arc::default(),
            deducts: Arc::default(),
        }
    }

    pub fn next(&self, fates: &[Fate]) {
        self.fates.lock().unwrap().extend(fates);
    }

    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst) || !self.is_configured()
    }
}

/// Passes a method on, unless the ledger is away.
macro_rules! pass {
    ($($method:ident($($arg:ident: $type:ty),*) -> $reply:ty;)+) => {
        $(async fn $method(&self, $($arg: $type),*) -> LedgerResult<$reply> {
            if self.is_away() {
                return lost(stringify!($method));
            }
            self.inner.$method($($arg),*).await
        })+
    };
}

impl StockLedger for FlakyLedger {
    fn is_configured(&self) -> bool {
        !self.absent.load(Ordering::SeqCst)
    }

    async fn deduct(&self, call: &DeductCall) -> LedgerResult<DeductReply> {
        self.deducts.fetch_add(1, Ordering::SeqCst);
        let fate = self.fates.lock().unwrap().pop_front();
        match fate {
            _ if self.is_away() => lost("deduct"),
            None => self.inner.deduct(call).await,
            Some(Fate::RequestLost) => lost("deduct"),
            Some(Fate::ReplyLost) => {
                self.inner.deduct(call).await?;
                lost("deduct")
            }
            Some(Fate::Says(LateWord::TooLate)) => Ok(DeductReply::TooLate),
            Some(Fate::Says(LateWord::NotLoaded)) => Ok(DeductReply::NotLoaded),
            Some(Fate::Says(LateWord::Recovering)) => Ok(DeductReply::Recovering),
            Some(Fate::Says(LateWord::StaleEpoch)) => Ok(DeductReply::StaleEpoch {
                current: Epoch::new(99),
            }),
        }
    }

    pass! {
        claim(shard: &Shard, epoch: Epoch, buyer: &BuyerId, order: OrderId, call: CallId) -> ClaimReply;
        confirm(shard: &Shard, epoch: Epoch, rows: &[ConfirmRow]) -> Vec<ConfirmReply>;
        release(shard: &Shard, epoch: Epoch, rows: &[ReleaseRow]) -> Vec<ReleaseReply>;
        adjust(shard: &Shard, epoch: Epoch, id: &AdjustmentId, delta: SignedUnits, owed: bool) -> AdjustReply;
        lend(shard: &Shard, epoch: Epoch, id: &AdjustmentId, units: Units) -> LendReply;
        set_gate(shard: &Shard, change: &GateChange) -> GateReply;
        raise_guard(shard: &Shard, epoch: Epoch, guard: Guard) -> ();
        lift_guard(shard: &Shard, epoch: Epoch, guard: Guard, pass_began: UnixMillis) -> LiftReply;
        preheat(call: &PreheatCall) -> PreheatReply;
        raise_route(sale: &SaleId, route: RouteInfo) -> RouteReply;
        read_route(sale: &SaleId) -> RouteReading;
        snapshot(shard: &Shard) -> ShardSnapshot;
        note_unpaid(sale: &SaleId, units: Units) -> ();
        record(shard: &Shard, buyer: &BuyerId) -> Option<OrderRecord>;
        records(shard: &Shard, cursor: Option<u64>) -> Page<(BuyerId, OrderRecord)>;
        outbox(shard: &Shard, cursor: Option<u64>) -> Page<(BuyerId, OrderRecord)>;
        adjustments(shard: &Shard) -> Vec<Remembered>;
        registered(sale: &SaleId) -> Registered;
        write_registry(entries: &[(SaleId, RegistryEntry)]) -> ();
        retire(sale: &SaleId, shards: ShardCount, ttl_ms: u64) -> ();
        ping() -> UnixMillis;
    }
}

/// A memory queue that can be away, or hang.
#[derive(Debug, Clone)]
pub struct FlakyQueue {
    pub inner: MemoryQueue,
    pub mood: Arc<Mutex<Mood>>,
}

/// What a queue does with a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Fine,
    /// It refuses at once.
    Away,
    /// The message arrives, and the answer never comes.
    Hangs,
    /// It takes sends, and no deletion gets through.
    KeepsLetters,
}

impl FlakyQueue {
    pub fn new(inner: MemoryQueue) -> Self {
        Self {
            inner,
            mood: Arc::new(Mutex::new(Mood::Fine)),
        }
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }
}

impl OrderQueue for FlakyQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Fine | Mood::KeepsLetters => self.inner.send_order(message).await,
            Mood::Away => Err(QueueError {
                action: "send an order",
                source: "the queue is away".into(),
            }),
            Mood::Hangs => {
                self.inner.send_order(message).await?;
                std::future::pending().await
            }
        }
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        self.inner.send_expiries(messages).await
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        if *self.mood.lock().unwrap() == Mood::Away {
            return Err(QueueError {
                action: "read the depth",
                source: "the queue is away".into(),
            });
        }
        self.inner.order_depth().await
    }
}

impl DeadLetters for FlakyQueue {
    async fn look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, QueueError> {
        self.inner.look(queue, limit).await
    }

    async fn put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), QueueError> {
        self.inner.put_back(queue, letters).await
    }

    async fn delete_letter(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), QueueError> {
        if *self.mood.lock().unwrap() == Mood::KeepsLetters {
            return Err(QueueError {
                action: "delete a letter",
                source: "the wire was cut".into(),
            });
        }
        self.inner.delete_letter(queue, letter).await
    }

    async fn dead_depth(&self, queue: QueueName) -> Result<QueueDepth, QueueError> {
        self.inner.dead_depth(queue).await
    }
}
