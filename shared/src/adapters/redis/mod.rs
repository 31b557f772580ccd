//! The redis adapter.
