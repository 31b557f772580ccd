//! The sqs adapter.
