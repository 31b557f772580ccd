//! deduct
