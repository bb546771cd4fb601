//! What all newtypes of a text that is checked when it is read have in common.

/// For a `struct $name(String)` that is read by `FromStr`: its text.
macro_rules! checked_text {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

pub(crate) use checked_text;
