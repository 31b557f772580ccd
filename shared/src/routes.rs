//! Where a sale is found.
