//! Protected places that no mount can hold: what is missing, and without namespaces what is there.

pub(crate) mod originals;
pub(crate) mod placeholders;
