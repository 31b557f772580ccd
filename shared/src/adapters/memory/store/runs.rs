//! Reconcile's lease, runs, sightings and cursors.

use super::state::{Lease, MemoryState};
use crate::{
    domain::{SaleId, UnixMillis},
    ports::Run,
};

impl MemoryState {
    pub(super) fn begin_run(&mut self, holder: &str, ttl_ms: u64, now: UnixMillis) -> Option<Run> {
        let taken = |lease: &Lease| lease.until > now && lease.holder != holder;
        if self.lease.as_ref().is_some_and(taken) {
            return None;
        }
        let run = Run {
            id: self.runs.last().map_or(1, |run| run.id + 1),
            began_at: now,
            heartbeat_at: now,
            ended_at: None,
            report: serde_json::Value::Null,
        };
        self.lease = Some(Lease {
            holder: holder.to_owned(),
            run: run.id,
            until: now.plus(ttl_ms),
        });
        self.runs.push(run.clone());
        Some(run)
    }

    pub(super) fn heartbeat(
        &mut self,
        run: i64,
        holder: &str,
        ttl_ms: u64,
        now: UnixMillis,
    ) -> bool {
        let Some(lease) = self.held_lease(run, holder) else {
            return false;
        };
        lease.until = now.plus(ttl_ms);
        if let Some(run) = self.runs.iter_mut().find(|row| row.id == run) {
            run.heartbeat_at = now;
        }
        true
    }

    pub(super) fn end_run(
        &mut self,
        run: i64,
        holder: &str,
        report: &serde_json::Value,
        now: UnixMillis,
    ) {
        if self.held_lease(run, holder).is_some() {
            self.lease = None;
        }
        let row = self.runs.iter_mut().find(|row| row.id == run);
        if let Some(row) = row.filter(|row| row.ended_at.is_none()) {
            row.ended_at = Some(now);
            row.report = report.clone();
        }
    }

    fn held_lease(&mut self, run: i64, holder: &str) -> Option<&mut Lease> {
        self.lease
            .as_mut()
            .filter(|lease| lease.run == run && lease.holder == holder)
    }

    pub(super) fn sightings(
        &mut self,
        sale: &SaleId,
        keys: &[String],
        now: UnixMillis,
    ) -> Vec<UnixMillis> {
        let seen = self.sightings.entry(sale.clone()).or_default();
        seen.retain(|key, _| keys.contains(key));
        keys.iter()
            .map(|key| *seen.entry(key.clone()).or_insert(now))
            .collect()
    }

    pub(super) fn swap_cursor(
        &mut self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> Option<String> {
        let key = (sale.clone(), walk.to_owned());
        match cursor {
            Some(cursor) => self.cursors.insert(key, cursor.to_owned()),
            None => self.cursors.remove(&key),
        }
    }
}
