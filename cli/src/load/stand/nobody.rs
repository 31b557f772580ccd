//! Nobody to call.

use shared::domain::SaleId;

use super::{Books, Drained, OpenSale, RedisUse, Stand};
use crate::load::{Buyer, Heard, LoadError};

/// Answers at once: what is left is what calling costs.
#[derive(Debug)]
pub(in crate::load) struct Nobody;

impl Stand for Nobody {
    fn restart(&self) -> Result<(), LoadError> {
        Ok(())
    }

    async fn open(&self, stock: u64) -> Result<OpenSale, LoadError> {
        OpenSale::new(SaleId::parse("nobody")?, stock)
    }

    async fn buy(&self, _: &OpenSale, _: &Buyer) -> Heard {
        tokio::task::yield_now().await;
        Heard::Refused
    }

    async fn drain(&self, _: &OpenSale) -> Result<Drained, LoadError> {
        Ok(Drained::default())
    }

    async fn books(&self, _: &OpenSale) -> Result<Books, LoadError> {
        Err(LoadError::Wrong("nobody keeps books".to_owned()))
    }

    async fn forget(&self, _: &OpenSale) -> Result<(), LoadError> {
        Ok(())
    }

    fn redis_use(&self) -> Result<Option<RedisUse>, LoadError> {
        Ok(None)
    }

    fn must_drain(&self) -> bool {
        false
    }

    fn waiting(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared::domain::ShardCount;

    use super::*;
    use crate::{
        load::{Crowd, pace::flat_out},
        tokens::LocalKeys,
    };

    #[tokio::test]
    async fn everybody_calls_once() {
        let keys = LocalKeys::generate().unwrap();
        let crowd = Arc::new(Crowd::sign(&keys, 30, ShardCount::ONE, 60).unwrap());
        let nobody = Arc::new(Nobody);
        let sale = Arc::new(nobody.open(0).await.unwrap());
        let run = flat_out(&nobody, &sale, &crowd, 5..30, 4).await.unwrap();
        assert_eq!((run.tally.refused, run.tally.errors()), (25, 0));
        assert_eq!(sale.served(), 25);
    }
}
