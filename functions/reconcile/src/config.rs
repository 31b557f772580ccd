//! The first stage: what can be compared without a walk.

use shared::domain::{Guard, RouteInfo, Sale, SaleStatus, ShardIndex, Units};
use shared::loading::loaded;
use shared::ports::{
    Clock, IdSource, OrderQueue, OrderStore, Registered, RunStore, SaleStore, ShardSnapshot,
    StockLedger,
};

use crate::scan::{Cursor, Stage};
use crate::sums::Baseline;
use crate::{Evidence, Finding, GateReading, Reconcile, ReconcileError, is_loaded_state};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn config_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let mut findings = Vec::new();
        self.registry(sale, &mut findings).await?;
        if !is_loaded_state(sale) {
            cursor.enter(Stage::Done);
            return Ok(findings);
        }
        let mut snapshots = Vec::new();
        for index in sale.plan.shards.indexes() {
            snapshots.push((index, loaded(&self.ledger, sale, index).await?));
        }
        let route = self.ledger.read_route(&sale.id).await?.route;
        // Read again: an operator or a load may have changed the row while Redis was read.
        if self.sale(&sale.id).await?.version != sale.version {
            cursor.enter(Stage::Done);
            cursor.cut = true;
            return Ok(findings);
        }
        for (index, snapshot) in &snapshots {
            compare_shard(sale, *index, snapshot.as_ref(), &mut findings);
        }
        compare_route(sale, &snapshots, route, &mut findings);
        findings.extend(debt_beside_stock(sale, &snapshots));
        if sale.status == SaleStatus::Closed && snapshots.iter().any(|(_, found)| found.is_none()) {
            // No pass can reach a shard that is gone, and a closed sale sells nothing, guarded or not.
            findings.retain(|finding| !matches!(finding, Finding::Guarded { .. }));
        }
        let closes_at = sale.plan.terms.closes_at;
        let now = self.store.now().await?;
        if sale.status != SaleStatus::Closed && now >= closes_at {
            findings.push(Finding::PastEnd { closes_at, now });
        }
        let needs_rebuild = findings
            .iter()
            .any(|finding| matches!(finding, Finding::NotLoaded { .. }));
        if needs_rebuild {
            // What else is wrong is the rebuild's to settle.
            cursor.enter(Stage::Done);
            return Ok(findings);
        }
        self.compare_adjustments(sale, &mut findings).await?;
        cursor.baseline = Baseline::of(&snapshots);
        cursor.enter(Stage::Outbox);
        Ok(findings)
    }

    async fn registry(
        &self,
        sale: &Sale,
        findings: &mut Vec<Finding>,
    ) -> Result<(), ReconcileError> {
        let have = match self.ledger.registered(&sale.id).await? {
            Registered::Listed(entry) if entry.opens_at == sale.plan.terms.opens_at => {
                Some(entry.status)
            }
            Registered::Listed(_) | Registered::Unlisted | Registered::NoRegistry => None,
        };
        if have != Some(sale.status) {
            findings.push(Finding::RegistryDiffers {
                have,
                want: sale.status,
            });
        }
        Ok(())
    }
}

fn compare_shard(
    sale: &Sale,
    shard: ShardIndex,
    snapshot: Option<&ShardSnapshot>,
    findings: &mut Vec<Finding>,
) {
    let Some(found) = snapshot else {
        // A closed sale has nothing to sell, and nothing to release where nothing is held.
        if sale.status != SaleStatus::Closed {
            findings.push(Finding::NotLoaded {
                shard,
                have: None,
                want: sale.epoch,
            });
        }
        return;
    };
    if found.epoch < sale.epoch {
        findings.push(Finding::NotLoaded {
            shard,
            have: Some(found.epoch),
            want: sale.epoch,
        });
        return;
    }
    if found.epoch > sale.epoch {
        let evidence = Evidence::EpochAhead {
            have: found.epoch,
            sql: sale.epoch,
        };
        findings.push(Finding::SqlWentBack { evidence });
        return;
    }
    if found.gate_version > sale.version {
        let evidence = Evidence::VersionAhead {
            have: found.gate_version,
            sql: sale.version,
        };
        findings.push(Finding::SqlWentBack { evidence });
    }
    let have = GateReading {
        gate: found.gate,
        version: found.gate_version,
        terms: found.terms,
    };
    let want = GateReading {
        gate: sale.status.gate(),
        version: sale.version,
        terms: sale.plan.terms,
    };
    // An older version with the same meaning is no difference: loads raise it without changing the gate.
    if (have.gate, have.terms) != (want.gate, want.terms) {
        findings.push(Finding::GateDiffers { shard, have, want });
    }
    if found.guard != Guard::None {
        findings.push(Finding::Guarded {
            shard,
            guard: found.guard,
            since: found.guard_since,
        });
    }
}

/// A shard that owes, while another sells what is owed. A closed sale sells nothing.
pub(crate) fn debt_beside_stock(
    sale: &Sale,
    snapshots: &[(ShardIndex, Option<ShardSnapshot>)],
) -> Option<Finding> {
    let here = || {
        snapshots
            .iter()
            .filter_map(|(index, found)| Some((*index, found.as_ref()?)))
    };
    let (shard, debt) = here()
        .map(|(index, found)| (index, found.debt))
        .find(|(_, debt)| *debt > Units::ZERO)?;
    let sells = here().any(|(_, found)| found.stock > Units::ZERO);
    (sells && sale.status != SaleStatus::Closed).then_some(Finding::DebtBesideStock { shard, debt })
}

/// The route must be SQL's once every shard is of SQL's epoch.
fn compare_route(
    sale: &Sale,
    snapshots: &[(ShardIndex, Option<ShardSnapshot>)],
    have: Option<RouteInfo>,
    findings: &mut Vec<Finding>,
) {
    if let Some(route) = have.filter(|route| route.epoch > sale.epoch) {
        let evidence = Evidence::EpochAhead {
            have: route.epoch,
            sql: sale.epoch,
        };
        findings.push(Finding::SqlWentBack { evidence });
        return;
    }
    let whole = snapshots
        .iter()
        .all(|(_, found)| found.as_ref().is_some_and(|s| s.epoch == sale.epoch));
    let want = sale.route();
    if whole && have != Some(want) {
        findings.push(Finding::RouteDiffers { have, want });
    }
}
