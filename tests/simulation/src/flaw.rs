//! Wrong builds. Each is a wrapper of a port or an actor that knows no better; the product has no switch.

use clap::ValueEnum;

use crate::oracle::Oracle;

/// A wrong build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Flaw {
    /// 1: stock is looked at before the buyer's record.
    StockBeforeReplay,
    /// 2: each attempt mints a new order.
    MintedIds,
    /// 3: 202 before the queue acknowledged.
    AcceptBeforeSend,
    /// 4: a failed send gives the units back.
    GiveBackOnFailedSend,
    /// 5: nothing finds a hold whose message was never sent.
    NoOutbox,
    /// 6: whoever asks for a claim has it.
    PublishWithoutClaim,
    /// 7: a call is not known again after a lost answer.
    ClaimNotOfCall,
    /// 8: a late copy of `deduct` still takes.
    NoNotAfter,
    /// 9: each release gives the units again.
    ReleaseAgain,
    /// 10: an adopted order takes no stock.
    AdoptWithoutDebt,
    /// 11: what an adopted order lacks is forgotten.
    CapInsteadOfDebt,
    /// 12: restock in Redis first, withdraw in SQL first.
    AdjustWrongWay,
    /// 13: a refused adjustment is forgotten.
    ForgetRefusals,
    /// 14: what SQL contains already may be refused.
    RefusableReapply,
    /// 15: a load replaces whatever shard it finds.
    LoadOverSelling,
    /// 16: release and adjust take the shard's epoch for theirs.
    EpochIgnored,
    /// 17: settle takes a duplicate for a live order.
    DuplicateIsLive,
    /// 18: a row marked released is never looked at again.
    TrustReleasedEpoch,
    /// 19: releases are found from the outbox alone.
    ReleaseFromOutbox,
    /// 20: a late message revives a closed order.
    ReviveClosed,
    /// 21: a load forgets which adjustments its total contains.
    LoadWithoutAdjustments,
    /// 22: a load's numbers are fixed before the holds are resolved.
    SplitTooEarly,
    /// 23: an old gate overwrites a newer one.
    GateWithoutVersion,
    /// 24: opening the gate lifts the guard.
    GateIsGuard,
    /// 25: a claim counts its order into the outbox again.
    ClaimRevivesOutbox,
    /// 26: a job sets the stock to what SQL has available.
    SetCounters,
    /// 27: the entries of a transfer between shards are deleted when it is done.
    ForgetTransfers,
    /// 28: orders expire although their payments may be missing.
    ExpireFrozen,
}

impl Flaw {
    /// Its number in the list of wrong builds.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// Together with which other wrong build it is caught: alone, another rule of the protocol covers it.
    #[must_use]
    pub const fn partner(self) -> Option<Self> {
        match self {
            Self::DuplicateIsLive => Some(Self::TrustReleasedEpoch),
            _ => None,
        }
    }

    /// It and its partner.
    #[must_use]
    pub fn with_partner(self) -> Vec<Self> {
        [Some(self), self.partner()].into_iter().flatten().collect()
    }

    /// Within how many runs it is caught, from seed 0 on.
    #[must_use]
    pub const fn within_runs(self) -> u64 {
        match self {
            // Only a withdrawal that one of two shards refused and a restore of SQL together show it.
            Self::RefusableReapply => 12_000,
            _ => 4_000,
        }
    }

    /// The oracles that must catch it; any one of them does.
    #[must_use]
    pub const fn caught_by(self) -> &'static [Oracle] {
        use Oracle as O;
        match self {
            Self::StockBeforeReplay | Self::MintedIds => &[O::WinnerRefused],
            Self::AcceptBeforeSend => &[O::AcceptedWithoutMessage, O::AcceptedMissing],
            Self::GiveBackOnFailedSend => &[O::Direction, O::FalseAlarm, O::Rejected],
            Self::NoOutbox => &[O::Stuck, O::Undersold, O::NotSettled],
            Self::PublishWithoutClaim => &[O::MessagesPerClaim],
            Self::ClaimNotOfCall => &[O::ToldAnotherHasIt],
            Self::NoNotAfter => &[O::TakeAfterNotAfter],
            Self::ReleaseAgain => &[O::Direction, O::ShardSums, O::Rest, O::FalseAlarm],
            Self::AdoptWithoutDebt | Self::CapInsteadOfDebt => {
                &[O::FalseAlarm, O::ShardSums, O::Rest]
            }
            Self::AdjustWrongWay => &[O::Direction, O::Rejected],
            Self::ForgetRefusals | Self::RefusableReapply => &[O::AdjustmentForgotten],
            Self::LoadOverSelling => &[
                O::Direction,
                O::Records,
                O::Rejected,
                O::FalseAlarm,
                O::ShardSums,
            ],
            Self::EpochIgnored => &[O::OldEpoch],
            Self::DuplicateIsLive => &[O::Records, O::FalseAlarm, O::Direction, O::Rest],
            Self::TrustReleasedEpoch | Self::ReleaseFromOutbox => {
                &[O::Records, O::Undersold, O::Rest, O::FalseAlarm]
            }
            Self::ReviveClosed => &[O::ClosedLives],
            Self::LoadWithoutAdjustments => &[O::Totals, O::FalseAlarm, O::Rest, O::Direction],
            Self::SplitTooEarly => &[O::LoadNumbers],
            Self::GateWithoutVersion => &[O::SoldWhileSuspended],
            Self::GateIsGuard => &[O::SoldUnderGuard],
            Self::ClaimRevivesOutbox => &[O::Stuck, O::NotSettled],
            Self::ForgetTransfers => &[
                O::Direction,
                O::ShardSums,
                O::Totals,
                O::Rest,
                O::FalseAlarm,
            ],
            Self::ExpireFrozen => &[O::ExpiredFrozen],
            Self::SetCounters => &[O::Direction, O::ShardSums, O::Rejected, O::FalseAlarm],
        }
    }
}

/// The wrong builds of one run: usually none or one, two for a named pair.
#[derive(Debug, Clone, Default)]
pub struct Flaws(Vec<Flaw>);

impl Flaws {
    /// These wrong builds together.
    #[must_use]
    pub fn new(flaws: &[Flaw]) -> Self {
        Self(flaws.to_vec())
    }

    /// Whether `flaw` is among them.
    #[must_use]
    pub fn has(&self, flaw: Flaw) -> bool {
        self.0.contains(&flaw)
    }

    /// Those that there are.
    #[must_use]
    pub fn list(&self) -> &[Flaw] {
        &self.0
    }
}
