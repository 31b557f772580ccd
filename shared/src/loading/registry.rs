//! The registry: what Redis says of a sale that has no route.

use super::LoadError;
use crate::limits::PAGE_ROWS;
use crate::ports::{RegistryEntry, SaleStore, StockLedger};

/// Writes the registry whole, from every sale in SQL that is not queued.
pub async fn publish_registry<L: StockLedger, S: SaleStore>(
    ledger: &L,
    store: &S,
) -> Result<(), LoadError> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = store.sales(&[], after.as_ref(), PAGE_ROWS).await?;
        after = page.last().map(|sale| sale.id.clone());
        let page = page.into_iter().filter(|sale| !sale.is_queued());
        entries.extend(page.map(|sale| {
            let entry = RegistryEntry {
                status: sale.status,
                opens_at: sale.plan.terms.opens_at,
            };
            (sale.id, entry)
        }));
        if after.is_none() {
            break;
        }
    }
    Ok(ledger.write_registry(&entries).await?)
}
