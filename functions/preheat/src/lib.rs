//! preheat
