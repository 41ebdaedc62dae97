//! Statements specific to SQLite.

/// The transaction began as the only writer: no other session can take the same order.
pub(crate) const OLDEST_NEW_ORDER: &str = "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
     AND no_o_id = (SELECT min(no_o_id) FROM new_order WHERE no_w_id = $1 AND no_d_id = $2) \
     RETURNING no_o_id";
