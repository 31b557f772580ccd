//! A sale in memory behind a small HTTP server, so that the driver and the client can be tested, and shown
//! wrong sales, without any other part of the project.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use shared::domain::{BuyerId, IdempotencyKey, OrderId, SaleId};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::StockProbe;

/// How the fake is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not at all.
    None,
    /// Every third buy call is answered 503 first.
    Busy,
    /// It has one more unit than it says.
    Oversell,
    /// The third winner's order is forgotten.
    LoseOne,
    /// Stock is checked before a replay.
    StockFirst,
    /// A negative quantity raises the stock.
    Negative,
}

#[derive(Debug)]
struct Order {
    id: OrderId,
    quantity: i64,
    status: &'static str,
    pay_by: Instant,
}

#[derive(Debug)]
struct State {
    fault: Fault,
    stage: &'static str,
    total: i64,
    stock: i64,
    window: Duration,
    /// By buyer and key.
    orders: HashMap<(String, String), Order>,
    calls: u64,
}

/// The server; it ends with its tasks when the runtime does.
#[derive(Debug, Clone)]
pub struct FakeApi {
    /// Its address.
    pub base: String,
    state: Arc<Mutex<State>>,
}

impl StockProbe for FakeApi {
    async fn remaining(&self, _sale: &SaleId) -> Option<u64> {
        u64::try_from(self.state.lock().unwrap().stock).ok()
    }
}

struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Value,
}

impl FakeApi {
    /// Starts one on a free port.
    pub async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(Mutex::new(State {
            fault,
            stage: "draft",
            total: 0,
            stock: 0,
            window: Duration::ZERO,
            orders: HashMap::new(),
            calls: 0,
        }));
        let api = Self {
            base: format!("http://{}/local", listener.local_addr().unwrap()),
            state: Arc::clone(&state),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        api
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    while let Some(request) = read(&mut stream).await {
        let (status, body) = state.lock().unwrap().answer(&request);
        let body = body.to_string();
        let retry = if status == 503 {
            "Retry-After: 0\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n{retry}\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut chunk = [0; 4_096];
        let count = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = bytes.split_off(head_end + 4);
    let have = body.len();
    body.resize(length, 0);
    if have < length {
        stream.read_exact(&mut body[have..]).await.ok()?;
    }
    Some(Request {
        method: first.next()?.to_owned(),
        path: first.next()?.trim_start_matches("/local").to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    })
}

/// The subject of a token, unverified: this server checks nothing but the driver.
fn subject(request: &Request) -> Option<String> {
    let token = request
        .headers
        .get("authorization")?
        .strip_prefix("Bearer ")?;
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}

fn problem(status: u16, code: &str) -> (u16, Value) {
    (status, json!({ "code": code }))
}

impl State {
    fn answer(&mut self, request: &Request) -> (u16, Value) {
        self.expire();
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), path.as_slice()) {
            ("PUT", ["admin", "sales", _]) => {
                self.total = request.body["stock"].as_i64().unwrap();
                self.window =
                    Duration::from_secs(request.body["payment_window_s"].as_u64().unwrap());
                (201, json!({}))
            }
            ("POST", ["admin", "sales", _, "preheat"]) => {
                self.stock = self.total + i64::from(self.fault == Fault::Oversell);
                self.stage = "open";
                (200, json!({}))
            }
            ("POST", ["admin", "sales", _, "close"]) => {
                self.stage = "closed";
                (200, json!({}))
            }
            ("POST", ["admin", "sales", _, last]) => {
                assert!(
                    *last == "approve" || last.starts_with("reconcile?mode="),
                    "{last}"
                );
                (200, json!({"findings": []}))
            }
            ("GET", ["admin", "sales", _, "report"]) => (200, self.report()),
            ("POST", ["sales", sale, "orders"]) => self.buy(sale, request),
            ("POST", ["payments", "events"]) => {
                assert!(request.headers["flashsale-signature"].starts_with("t="));
                self.close_order(&request.body["order_id"], "paid")
            }
            ("POST", ["sales", _, "orders", id, "cancel"]) => {
                self.close_order(&json!(id), "cancelled")
            }
            ("GET", ["sales", _, "orders", id]) => {
                let who = subject(request).unwrap();
                let hers = |((buyer, _), order): &(&(String, String), &Order)| {
                    *buyer == who && order.id.to_string() == *id
                };
                let found = self.orders.iter().find(hers);
                found.map_or(problem(404, "order_not_found"), |(_, order)| {
                    (200, json!({"status": order.status}))
                })
            }
            other => panic!("unexpected call {other:?}"),
        }
    }

    fn buy(&mut self, sale: &str, request: &Request) -> (u16, Value) {
        self.calls += 1;
        if self.fault == Fault::Busy && self.calls.is_multiple_of(3) {
            return problem(503, "busy");
        }
        let Some(buyer) = subject(request) else {
            return problem(401, "unauthenticated");
        };
        let key = request.headers["idempotency-key"].clone();
        let quantity = request.body["quantity"].as_i64();
        let negative = self.fault == Fault::Negative;
        let Some(quantity) = quantity.filter(|quantity| *quantity > 0 || negative) else {
            return problem(400, "malformed");
        };
        if self.fault == Fault::StockFirst && self.stock == 0 {
            return problem(409, "sold_out");
        }
        let id = OrderId::derive(
            &SaleId::parse(sale).unwrap(),
            &BuyerId::from_subject(&buyer).unwrap(),
            &IdempotencyKey::parse(&key).unwrap(),
        );
        if let Some(order) = self.orders.get(&(buyer.clone(), key.clone())) {
            return match order.status {
                "cancelled" | "expired" => problem(409, "order_closed"),
                _ => (202, json!({"order_id": id})),
            };
        }
        match (self.stage, quantity) {
            ("draft", _) => return problem(409, "not_started"),
            ("closed", _) => return problem(410, "ended"),
            (_, 3..) => return problem(422, "quantity_over_limit"),
            _ if self.stock == 0 => return problem(409, "sold_out"),
            _ if self.stock < quantity => return problem(409, "not_enough_left"),
            _ => {}
        }
        self.stock -= quantity;
        let order = Order {
            id,
            quantity,
            status: "awaiting_payment",
            pay_by: Instant::now() + self.window,
        };
        if self.fault != Fault::LoseOne || self.orders.len() != 2 {
            self.orders.insert((buyer, key), order);
        }
        (202, json!({"order_id": id}))
    }

    fn close_order(&mut self, id: &Value, to: &'static str) -> (u16, Value) {
        let named = |order: &&mut Order| json!(order.id) == *id;
        let Some(order) = self.orders.values_mut().find(named) else {
            return problem(404, "order_not_found");
        };
        order.status = to;
        if to == "cancelled" {
            self.stock += order.quantity;
        }
        (200, json!({"outcome": to}))
    }

    fn expire(&mut self) {
        for order in self.orders.values_mut() {
            if order.status == "awaiting_payment" && Instant::now() >= order.pay_by {
                order.status = "expired";
                self.stock += order.quantity;
            }
        }
    }

    fn report(&self) -> Value {
        let mut orders = BTreeMap::<_, u64>::new();
        for order in self.orders.values() {
            *orders.entry(order.status).or_default() += 1;
        }
        let live = |order: &&Order| matches!(order.status, "awaiting_payment" | "paid");
        let live: i64 = self
            .orders
            .values()
            .filter(live)
            .map(|order| order.quantity)
            .sum();
        json!({
            "total": self.total, "available": self.stock, "live_units": live, "orders": orders,
            "checks": {"i2": "holds"},
            "shards": [{"stock": self.stock, "counted": {"live": live}, "lent": 0, "debt": 0, "total": self.total}],
        })
    }
}
