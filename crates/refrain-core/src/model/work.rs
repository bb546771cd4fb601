//! The work: what the worktree holds that git does not ignore, as one digest. Digests are only compared for equality.

use crate::hex::Hex;

/// The content of a worktree, as 32 hexadecimal digits. Two states of the work are the same if their digests are.
/// Stored in journals.
pub type WorkDigest = Hex<32>;
