//! What can be wrong between Redis, the queue and SQL, each with the readings that prove it.

use serde::{Deserialize, Serialize};
use shared::domain::{
    BuyerId, Epoch, Gate, Guard, Order, OrderId, OrderRecord, RouteInfo, SaleStatus, ShardIndex,
    SignedUnits, Terms, Units, UnixMillis, Version,
};
use shared::ports::Adjustment;

/// One thing that is wrong, or due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// Held, its claim over, and SQL does not have it: claim it and publish it again.
    Unpublished {
        /// Where.
        shard: ShardIndex,
        /// The shard's load.
        epoch: Epoch,
        /// Whose.
        buyer_id: BuyerId,
        /// The record.
        record: OrderRecord,
    },
    /// Live in SQL; Redis has it held, under another quantity, or not at all: confirm it.
    Unconfirmed {
        /// The row.
        order: Order,
        /// What Redis has of this buyer.
        record: Option<OrderRecord>,
    },
    /// Closed in SQL; Redis holds its units, or is not known to have released them: release it.
    Unreleased {
        /// The row.
        order: Order,
        /// What Redis has of this buyer, where that was read.
        record: Option<OrderRecord>,
    },
    /// Unpaid past its deadline: expire it.
    Overdue {
        /// The order.
        order_id: OrderId,
    },
    /// An adjustment's state in SQL is not what the shards remember: apply it there, or undo it.
    AdjustmentDiffers {
        /// SQL's row.
        adjustment: Adjustment,
        /// For each shard of its split: whether it was applied there; none where it is unknown.
        shards: Vec<(ShardIndex, Option<bool>)>,
    },
    /// A transfer between two shards is not at its end: bring it there.
    TransferOpen {
        /// Its id.
        id: String,
        /// The giver.
        from: ShardIndex,
        /// The taker.
        to: ShardIndex,
        /// Its units.
        units: SignedUnits,
    },
    /// A shard's gate, window or limit is not SQL's: set it.
    GateDiffers {
        /// Where.
        shard: ShardIndex,
        /// In Redis.
        have: GateReading,
        /// In SQL.
        want: GateReading,
    },
    /// The route is not SQL's: raise it.
    RouteDiffers {
        /// In Redis.
        have: Option<RouteInfo>,
        /// In SQL.
        want: RouteInfo,
    },
    /// The registry says something else of the sale: write it.
    RegistryDiffers {
        /// In Redis; none where it does not list the sale, or is not there.
        have: Option<SaleStatus>,
        /// In SQL.
        want: SaleStatus,
    },
    /// Its window is over: close it.
    PastEnd {
        /// The end.
        closes_at: UnixMillis,
        /// SQL's clock.
        now: UnixMillis,
    },
    /// A shard waits for a pass from SQL to Redis: make one, then lift the guard.
    Guarded {
        /// Where.
        shard: ShardIndex,
        /// Which guard.
        guard: Guard,
        /// Since when (server time).
        since: UnixMillis,
    },
    /// A shard is gone, or of an older load: rebuild the sale.
    NotLoaded {
        /// Where.
        shard: ShardIndex,
        /// Its epoch, where it is there.
        have: Option<Epoch>,
        /// SQL's epoch.
        want: Epoch,
    },
    /// A shard owes units while others have some free: those would be sold, and refused by SQL, again and
    /// again. Rebuild, which shares out anew.
    DebtBesideStock {
        /// Where.
        shard: ShardIndex,
        /// What it owes.
        debt: Units,
    },
    /// SQL lacks what it must have had: suspend, alarm; a person orders a rebuild.
    SqlWentBack {
        /// What shows it.
        evidence: Evidence,
    },
    /// An identity does not hold at rest: suspend, alarm; a person orders a rebuild.
    SumsOff {
        /// Which one: `I1`, `I1b`, `I2` or `I6`.
        identity: String,
        /// Where, for an identity of one shard.
        shard: Option<ShardIndex>,
        /// The value found.
        found: i64,
        /// The value that it must have.
        wanted: i64,
    },
    /// Closed, and nothing is open: settle it.
    AtRest,
}

/// A gate as one of the stores has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReading {
    /// The gate.
    pub gate: Gate,
    /// Its version.
    pub version: Version,
    /// Window and limit.
    pub terms: Terms,
}

/// What shows that SQL was restored to an earlier point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Evidence {
    /// Redis was told that SQL has this order, and SQL does not.
    ConfirmedUnknown {
        /// The order.
        order_id: OrderId,
    },
    /// Redis was told that SQL closed this order, and it is live, read twice.
    ReleasedLive {
        /// The order.
        order_id: OrderId,
    },
    /// A shard or the route has an epoch above SQL's.
    EpochAhead {
        /// Redis's.
        have: Epoch,
        /// SQL's.
        sql: Epoch,
    },
    /// A gate was made from a newer row than SQL has.
    VersionAhead {
        /// Redis's.
        have: Version,
        /// SQL's.
        sql: Version,
    },
    /// A shard applied an adjustment that SQL does not list.
    AdjustmentUnknown {
        /// Its id.
        id: String,
    },
}

impl Finding {
    /// Its kind, for counts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unpublished { .. } => "unpublished",
            Self::Unconfirmed { .. } => "unconfirmed",
            Self::Unreleased { .. } => "unreleased",
            Self::Overdue { .. } => "overdue",
            Self::AdjustmentDiffers { .. } => "adjustment_differs",
            Self::TransferOpen { .. } => "transfer_open",
            Self::GateDiffers { .. } => "gate_differs",
            Self::RouteDiffers { .. } => "route_differs",
            Self::RegistryDiffers { .. } => "registry_differs",
            Self::PastEnd { .. } => "past_end",
            Self::Guarded { .. } => "guarded",
            Self::NotLoaded { .. } => "not_loaded",
            Self::DebtBesideStock { .. } => "debt_beside_stock",
            Self::SqlWentBack { .. } => "sql_went_back",
            Self::SumsOff { .. } => "sums_off",
            Self::AtRest => "at_rest",
        }
    }

    /// What it is about: two findings with one subject are the same one, seen twice.
    #[must_use]
    pub fn subject(&self) -> String {
        let kind = self.kind();
        match self {
            Self::Unpublished { record, .. } => format!("{kind}:{}", record.order_id),
            Self::Unconfirmed { order, .. } | Self::Unreleased { order, .. } => {
                format!("{kind}:{}", order.id)
            }
            Self::Overdue { order_id } => format!("{kind}:{order_id}"),
            Self::AdjustmentDiffers { adjustment, .. } => {
                format!("{kind}:{}", adjustment.id.as_str())
            }
            Self::TransferOpen { id, .. } => format!("{kind}:{id}"),
            Self::GateDiffers { shard, .. }
            | Self::Guarded { shard, .. }
            | Self::NotLoaded { shard, .. }
            | Self::DebtBesideStock { shard, .. } => format!("{kind}:{}", shard.get()),
            Self::RouteDiffers { .. }
            | Self::RegistryDiffers { .. }
            | Self::PastEnd { .. }
            | Self::AtRest => kind.to_owned(),
            Self::SqlWentBack { evidence } => format!("{kind}:{}", evidence.subject()),
            Self::SumsOff {
                identity, shard, ..
            } => match shard {
                Some(shard) => format!("{kind}:{identity}:{}", shard.get()),
                None => format!("{kind}:{identity}"),
            },
        }
    }

    /// Whether one sight is not enough: it is an absence or a sum, and both may be a moment's truth.
    #[must_use]
    pub const fn needs_second_look(&self) -> bool {
        matches!(
            self,
            Self::DebtBesideStock { .. }
                | Self::SqlWentBack { .. }
                | Self::SumsOff { .. }
                | Self::AtRest
        )
    }

    /// Whether a person must act.
    #[must_use]
    pub const fn is_alarm(&self) -> bool {
        matches!(self, Self::SqlWentBack { .. } | Self::SumsOff { .. })
    }
}

impl Evidence {
    fn subject(&self) -> String {
        match self {
            Self::ConfirmedUnknown { order_id } => format!("confirmed:{order_id}"),
            Self::ReleasedLive { order_id } => format!("released:{order_id}"),
            Self::EpochAhead { .. } => "epoch".to_owned(),
            Self::VersionAhead { .. } => "version".to_owned(),
            Self::AdjustmentUnknown { id } => format!("adjustment:{id}"),
        }
    }
}
