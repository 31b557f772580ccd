//! The environment, read in one place.
