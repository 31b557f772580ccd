//! The port, call by call.

use std::sync::Arc;

use super::{
    connection::Connection,
    deduct::{self, KnownTerms, deduct},
    keys, orders,
    reads::{self, REGISTRY_MARK, gate_word, guard_word, typed},
    replies::{Reply, common, number, unexpected},
    scripts,
    settings::RedisSettings,
};
use crate::domain::{
    AdjustmentId, BuyerId, CallId, Epoch, Guard, OrderId, OrderRecord, RouteInfo, SaleId,
    ShardCount, SignedUnits, Units, UnixMillis, Version,
};
use crate::ports::{
    AdjustReply, ClaimReply, ConfirmReply, ConfirmRow, DeductCall, DeductReply, GateChange,
    GateReply, LedgerResult, LendReply, LiftReply, Page, PreheatCall, PreheatReply, Registered,
    RegistryEntry, ReleaseReply, ReleaseRow, Remembered, RouteReading, RouteReply, Shard,
    ShardSnapshot, StockLedger,
};

/// The ledger on a Redis or Valkey server or cluster. It connects at its first call; clones share the
/// connection.
#[derive(Clone)]
pub struct RedisLedger {
    connection: Arc<Connection>,
    terms: Arc<KnownTerms>,
}

impl RedisLedger {
    /// A ledger on these servers. Nothing is sent yet.
    #[must_use]
    pub fn new(settings: RedisSettings) -> Self {
        // TLS needs one provider per process. An error here says that main has chosen one, which stays.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        Self {
            connection: Arc::new(Connection::new(settings)),
            terms: Arc::default(),
        }
    }
}

impl std::fmt::Debug for RedisLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisLedger").finish_non_exhaustive()
    }
}

impl StockLedger for RedisLedger {
    fn is_configured(&self) -> bool {
        self.connection.is_configured()
    }

    async fn deduct(&self, call: &DeductCall) -> LedgerResult<DeductReply> {
        deduct(&self.connection, &self.terms, call).await
    }

    async fn claim(
        &self,
        shard: &Shard,
        epoch: Epoch,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
    ) -> LedgerResult<ClaimReply> {
        orders::claim(&self.connection, shard, epoch, buyer, order, call).await
    }

    async fn confirm(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ConfirmRow],
    ) -> LedgerResult<Vec<ConfirmReply>> {
        orders::confirm(&self.connection, shard, epoch, rows).await
    }

    async fn release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ReleaseRow],
    ) -> LedgerResult<Vec<ReleaseReply>> {
        orders::release(&self.connection, shard, epoch, rows).await
    }

    async fn adjust(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> LedgerResult<AdjustReply> {
        let keys = [keys::sale(shard), keys::adjust(shard)];
        let epoch = epoch.get().to_string();
        let delta = delta.get().to_string();
        let args = [
            epoch.as_str(),
            id.as_str(),
            &delta,
            if owed { "1" } else { "0" },
        ];
        let value = self
            .connection
            .script(&scripts::ADJUST, &keys, &args)
            .await?;
        match Reply::words("adjust", value)?.as_str() {
            "applied" => Ok(AdjustReply::Applied),
            "refused" => Ok(AdjustReply::Refused),
            "already_applied" => Ok(AdjustReply::AlreadyApplied),
            "already_refused" => Ok(AdjustReply::AlreadyRefused),
            other => Err(common("adjust", other)),
        }
    }

    async fn lend(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        units: Units,
    ) -> LedgerResult<LendReply> {
        let keys = [keys::sale(shard), keys::adjust(shard)];
        let (epoch, units) = (epoch.get().to_string(), units.get().to_string());
        let args = [epoch.as_str(), id.as_str(), &units];
        let value = self.connection.script(&scripts::LEND, &keys, &args).await?;
        match Reply::words("lend", value)?.as_str() {
            "lent" => Ok(LendReply::Lent),
            "short" => Ok(LendReply::Short),
            "guarded" => Ok(LendReply::Guarded),
            other => Err(common("lend", other)),
        }
    }

    async fn set_gate(&self, shard: &Shard, change: &GateChange) -> LedgerResult<GateReply> {
        let args = gate_args(change);
        let value = self
            .connection
            .script(&scripts::GATE, &[keys::sale(shard)], &args)
            .await?;
        let text = Reply::words("gate", value)?;
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("set", "") => Ok(GateReply::Set),
            ("older", current) => Ok(GateReply::Older {
                current: Version::new(number("gate", current)?),
            }),
            _ => Err(common("gate", &text)),
        }
    }

    async fn raise_guard(&self, shard: &Shard, epoch: Epoch, guard: Guard) -> LedgerResult<()> {
        match self
            .guard(shard, epoch, "raise", guard, UnixMillis::default())
            .await?
            .as_str()
        {
            "raised" => Ok(()),
            other => Err(common("raise_guard", other)),
        }
    }

    async fn lift_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> LedgerResult<LiftReply> {
        match self
            .guard(shard, epoch, "lift", guard, pass_began)
            .await?
            .as_str()
        {
            "lifted" => Ok(LiftReply::Lifted),
            "newer" => Ok(LiftReply::Newer),
            other => Err(common("lift_guard", other)),
        }
    }

    async fn preheat(&self, call: &PreheatCall) -> LedgerResult<PreheatReply> {
        let shard = &call.shard;
        let keys = [keys::sale(shard), keys::orders(shard), keys::adjust(shard)];
        let mut args = vec![call.epoch.get().to_string(), call.total.get().to_string()];
        args.extend(gate_args(&call.gate));
        for (id, delta) in &call.adjustments {
            args.extend([id.as_str().to_owned(), delta.get().to_string()]);
        }
        let value = self
            .connection
            .script(&scripts::PREHEAT, &keys, &args)
            .await?;
        let text = Reply::words("preheat", value)?;
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("made", "") => Ok(PreheatReply::Made),
            ("exists", "") => Ok(PreheatReply::Exists),
            ("busy", current) => Ok(PreheatReply::Busy {
                current: Epoch::new(number("preheat", current)?),
            }),
            _ => Err(common("preheat", &text)),
        }
    }

    async fn raise_route(&self, sale: &SaleId, route: RouteInfo) -> LedgerResult<RouteReply> {
        let args = [
            route.shards.get().to_string(),
            route.epoch.get().to_string(),
        ];
        let value = self
            .connection
            .script(&scripts::ROUTE, &[keys::route(sale)], &args)
            .await?;
        let text = Reply::words("route", value)?;
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("raised", "") => Ok(RouteReply::Raised),
            ("already", "") => Ok(RouteReply::Already),
            ("behind", current) => Ok(RouteReply::Behind {
                current: Epoch::new(number("route", current)?),
            }),
            _ => Err(common("route", &text)),
        }
    }

    async fn read_route(&self, sale: &SaleId) -> LedgerResult<RouteReading> {
        reads::route(&self.connection, sale).await
    }

    async fn snapshot(&self, shard: &Shard) -> LedgerResult<ShardSnapshot> {
        reads::snapshot(&self.connection, shard).await
    }

    async fn note_unpaid(&self, sale: &SaleId, units: Units) -> LedgerResult<()> {
        let cmd = redis::Cmd::set(keys::unpaid(sale), units.get());
        self.connection.command("note_unpaid", &cmd).await.map(drop)
    }

    async fn record(&self, shard: &Shard, buyer: &BuyerId) -> LedgerResult<Option<OrderRecord>> {
        reads::one_record(&self.connection, shard, buyer).await
    }

    async fn records(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        reads::records(&self.connection, shard, cursor).await
    }

    async fn outbox(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        reads::outbox(&self.connection, shard, cursor).await
    }

    async fn adjustments(&self, shard: &Shard) -> LedgerResult<Vec<Remembered>> {
        reads::adjustments(&self.connection, shard).await
    }

    async fn registered(&self, sale: &SaleId) -> LedgerResult<Registered> {
        reads::registered(&self.connection, sale).await
    }

    async fn write_registry(&self, entries: &[(SaleId, RegistryEntry)]) -> LedgerResult<()> {
        let mut fields = vec![(REGISTRY_MARK.to_owned(), entries.len().to_string())];
        fields.extend(entries.iter().map(|(sale, entry)| {
            let value = format!("{} {}", entry.status.as_str(), entry.opens_at.get());
            (sale.to_string(), value)
        }));
        let mut pipe = redis::pipe();
        pipe.atomic()
            .del(keys::REGISTRY)
            .hset_multiple(keys::REGISTRY, &fields);
        self.connection
            .atomic("write_registry", &pipe)
            .await
            .map(drop)
    }

    async fn retire(&self, sale: &SaleId, shards: ShardCount, ttl_ms: u64) -> LedgerResult<()> {
        let mut keys = vec![keys::route(sale), keys::unpaid(sale)];
        for index in shards.indexes() {
            let shard = Shard {
                sale_id: sale.clone(),
                index,
                of: shards,
            };
            keys.extend([
                keys::sale(&shard),
                keys::orders(&shard),
                keys::seen(&shard),
                keys::adjust(&shard),
            ]);
        }
        for key in keys {
            let mut cmd = redis::cmd("PEXPIRE");
            cmd.arg(key).arg(ttl_ms);
            self.connection.command("retire", &cmd).await?;
        }
        Ok(())
    }

    async fn ping(&self) -> LedgerResult<UnixMillis> {
        let value = self.connection.command("ping", &redis::cmd("TIME")).await?;
        let (seconds, micros): (u64, u64) = typed("ping", value)?;
        seconds
            .checked_mul(1_000)
            .map(|ms| UnixMillis::new(ms + micros / 1_000))
            .ok_or_else(|| unexpected("ping", "a time out of bounds"))
    }
}

impl RedisLedger {
    /// The command by which a process that has bought on this shard before sends this call, so that a
    /// measurement can put many into one pipeline.
    #[must_use]
    pub fn deduct_command(&self, call: &DeductCall) -> redis::Cmd {
        deduct::command(&self.terms, call)
    }

    /// What the answer to [`Self::deduct_command`] means; none when the call has to be made again.
    pub fn deduct_reply(
        &self,
        call: &DeductCall,
        value: redis::Value,
    ) -> LedgerResult<Option<DeductReply>> {
        deduct::read(value, call.epoch)
    }

    async fn guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        action: &str,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> LedgerResult<String> {
        let epoch = epoch.get().to_string();
        let pass_began = pass_began.get().to_string();
        let args = [epoch.as_str(), action, guard_word(guard), &pass_began];
        let value = self
            .connection
            .script(&scripts::GUARD, &[keys::sale(shard)], &args)
            .await?;
        Reply::words("guard", value)
    }
}

fn gate_args(change: &GateChange) -> [String; 5] {
    [
        change.version.get().to_string(),
        gate_word(change.gate).to_owned(),
        change.terms.limit.get().to_string(),
        change.terms.opens_at.get().to_string(),
        change.terms.closes_at.get().to_string(),
    ]
}
