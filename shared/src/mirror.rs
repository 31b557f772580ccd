//! Bringing the state of SQL rows to Redis.
