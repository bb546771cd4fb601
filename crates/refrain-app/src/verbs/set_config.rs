use camino::Utf8PathBuf;
use refrain_engine::config::edit::{self, KeyError, KeyPath};

use crate::{Action, Code, Context, RequestError};

pub fn config_key(text: &str) -> Result<KeyPath, RequestError> {
    Ok(KeyPath::parse(text)?)
}

/// Sets the key; returns the path of the file.
pub fn set_config(context: &Context, key: &str, value: &str) -> Result<Utf8PathBuf, RequestError> {
    context.check(Action::Configure)?;
    Ok(edit::set(&context.host.config_home, &config_key(key)?, value)?)
}

/// Removes the key; returns the path of the file, none if it does not have the key.
pub fn unset_config(context: &Context, key: &str) -> Result<Option<Utf8PathBuf>, RequestError> {
    context.check(Action::Configure)?;
    Ok(edit::unset(&context.host.config_home, &config_key(key)?)?)
}

impl From<KeyError> for RequestError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Unknown(_) => {
                Self::usage(error.to_string()).hint("refrain config show prints every key")
            }
            KeyError::Value(_) | KeyError::Form(_) => Self::usage(error.to_string()),
            KeyError::Changed(_) => Self::new(Code::Failed, error.to_string()),
            KeyError::Config(error) => error.into(),
            KeyError::Disk(error) => refrain_engine::EngineError::from(error).into(),
        }
    }
}
