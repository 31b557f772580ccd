//! Reading a batch: what each record says, and which belong together.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use shared::batch::Delivery;
use shared::domain::{OrderId, OrderMessage, SaleId};

/// The orders of one sale in a batch, each once, in the order in which they were reserved.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// The orders.
    pub messages: Vec<OrderMessage>,
    /// For each order, the ids of the queue messages that carried it: a standard queue may deliver two
    /// copies in one batch.
    pub ids: Vec<Vec<String>>,
    /// Where each order is, for a batch has thousands.
    places: HashMap<OrderId, usize>,
}

impl Group {
    /// The ids of every message of the group.
    pub fn all_ids(&self) -> impl Iterator<Item = String> + '_ {
        self.ids.iter().flatten().cloned()
    }

    fn add(&mut self, id: &str, message: OrderMessage) {
        match self.places.entry(message.order_id) {
            Entry::Vacant(place) => {
                place.insert(self.messages.len());
                self.messages.push(message);
                self.ids.push(vec![id.to_owned()]);
            }
            Entry::Occupied(place) => {
                let index = *place.get();
                // Copies of a queued sale's request say when each was received: the first counts.
                if message.reserved_at < self.messages[index].reserved_at {
                    self.messages[index] = message;
                }
                self.ids[index].push(id.to_owned());
            }
        }
    }

    fn ordered(self) -> Self {
        let mut pairs: Vec<_> = self.messages.into_iter().zip(self.ids).collect();
        pairs.sort_by_key(|(message, _)| (message.reserved_at, message.order_id));
        let (messages, ids) = pairs.into_iter().unzip();
        Self {
            messages,
            ids,
            places: HashMap::new(),
        }
    }
}

/// A batch, sorted.
#[derive(Debug)]
pub(crate) struct Intake {
    /// By sale.
    pub groups: BTreeMap<SaleId, Group>,
    /// Ids of the messages that nobody can read.
    pub failed: Vec<String>,
}

impl Intake {
    /// Reads every record by itself.
    pub fn sort(deliveries: &[Delivery]) -> Self {
        let mut groups: BTreeMap<SaleId, Group> = BTreeMap::new();
        let mut failed = Vec::new();
        for delivery in deliveries {
            match OrderMessage::from_json(&delivery.body) {
                Ok(message) => groups
                    .entry(message.sale_id.clone())
                    .or_default()
                    .add(&delivery.id, message),
                Err(error) => {
                    tracing::error!(
                        message_id = delivery.id,
                        %error,
                        "unreadable message; it will end in the dead-letter queue"
                    );
                    failed.push(delivery.id.clone());
                }
            }
        }
        let groups = groups
            .into_iter()
            .map(|(sale, group)| (sale, group.ordered()))
            .collect();
        Self { groups, failed }
    }
}
