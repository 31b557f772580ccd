//! What only reads.

use super::state::{LedgerState, ShardState, units};
use crate::domain::{BuyerId, OrderRecord, RecordState, SaleId, UnixMillis};
use crate::ports::{LedgerResult, Page, Registered, RouteReading, ShardSnapshot};

impl LedgerState {
    pub(super) fn read_route(&self, sale: &SaleId, now: UnixMillis) -> RouteReading {
        RouteReading {
            route: self.routes.get(sale).copied(),
            unpaid: self.unpaid.get(sale).copied().unwrap_or_default(),
            now,
        }
    }

    pub(super) fn registered(&self, sale: &SaleId) -> Registered {
        match &self.registry {
            None => Registered::NoRegistry,
            Some(entries) => entries
                .get(sale)
                .copied()
                .map_or(Registered::Unlisted, Registered::Listed),
        }
    }
}

impl ShardState {
    pub(super) fn snapshot(&self, now: UnixMillis) -> LedgerResult<ShardSnapshot> {
        Ok(ShardSnapshot {
            epoch: self.epoch,
            gate: self.gate,
            gate_version: self.gate_version,
            guard: self.guard,
            guard_since: self.guard_since,
            stock: units("snapshot", self.stock)?,
            debt: units("snapshot", self.debt)?,
            lent: units("snapshot", self.lent)?,
            total: units("snapshot", self.total)?,
            terms: self.terms,
            records: self.orders.len() as u64,
            outbox: self.outbox_len(),
            adjustments: self.adjustments.len() as u64,
            now,
        })
    }

    pub(super) fn records(&self, cursor: Option<u64>, rows: usize) -> Page<(BuyerId, OrderRecord)> {
        self.page(cursor, rows)
    }

    pub(super) fn outbox_page(
        &self,
        cursor: Option<u64>,
        rows: usize,
    ) -> Page<(BuyerId, OrderRecord)> {
        let mut page = self.page(cursor, rows);
        page.items
            .retain(|(_, record)| record.state == RecordState::Held);
        if self.outbox_len() == 0 {
            page.next = None;
        }
        page
    }

    /// A page in the order of the buyers' hashes, so that a walk misses nobody who is there throughout,
    /// whoever comes or goes meanwhile; the cursor is the last hash shown.
    fn page(&self, cursor: Option<u64>, rows: usize) -> Page<(BuyerId, OrderRecord)> {
        let mut left: Vec<(u64, &BuyerId)> = self
            .orders
            .keys()
            .map(|buyer| (hash(buyer), buyer))
            .filter(|(hash, _)| cursor.is_none_or(|shown| *hash > shown))
            .collect();
        left.sort_unstable();
        // Buyers with the same hash stay on one page, since the cursor cannot tell them apart.
        let last = left.get(rows.saturating_sub(1)).map(|(hash, _)| *hash);
        let end = last.map_or(left.len(), |last| {
            left.partition_point(|(hash, _)| *hash <= last)
        });
        let items = left[..end]
            .iter()
            .filter_map(|(_, buyer)| Some(((*buyer).clone(), self.orders.get(*buyer)?.clone())))
            .collect();
        Page {
            items,
            next: if end < left.len() { last } else { None },
        }
    }
}

/// FNV-1a.
fn hash(buyer: &BuyerId) -> u64 {
    buyer
        .as_str()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
