//! TPROC-C.
