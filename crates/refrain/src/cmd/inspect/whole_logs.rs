//! Long logs of loops that moved: all of them is brought from where the fleet keeps them.

use refrain_app::{Context, RequestError};
use refrain_core::LoopId;
use refrain_core::text::printable;
use refrain_core::view::garbage::size;
use refrain_engine::config::AgentChoice;
use refrain_engine::config::keys::BlobPlace;
use refrain_engine::{EngineError, LogFolder, LogStore, Service};

use crate::cmd::connect::fleet::LogBucket;
use crate::out;

/// Brings the logs of a loop, or of one iteration, of which only the begin and the end are here. A note says where those are
/// that cannot be brought.
pub(super) fn bring(
    context: &Context,
    service: &Service,
    id: &LoopId,
    iteration: Option<u32>,
) -> Result<(), RequestError> {
    // A configuration that cannot be read brings nothing, and other verbs say what is wrong with it.
    let settings = service.settings(AgentChoice::default(), context.has_variables()).ok();
    let place = settings.and_then(|settings| settings.config.fleet.blobs);
    let (folder, bucket);
    let store: Option<&dyn LogStore> = match &place {
        None | Some(BlobPlace::Git) => None,
        Some(BlobPlace::Folder(path)) => {
            folder = LogFolder::new(path);
            Some(&folder)
        }
        Some(BlobPlace::S3(address)) => {
            bucket = LogBucket { context, address };
            Some(&bucket)
        }
    };
    let excerpts = match service.bring_logs(id, iteration, store) {
        // The verb says what is damaged.
        Err(EngineError::Journal(_)) => return Ok(()),
        brought => brought?,
    };
    for it in excerpts {
        let all = if it.logs == 1 { "all of it" } else { "all of them" };
        let logs = if it.logs == 1 { "log" } else { "logs" };
        let (count, bytes, host) = (it.logs, size(it.bytes), it.host);
        let why = it.failure.map(|why| format!(" ({why})")).unwrap_or_default();
        let note = format!(
            "{id}: of {count} {logs} only the begin and the end are here; the machine {host} has {all}, {bytes}{why}"
        );
        out::tell_note(printable(&note).into_owned());
    }
    Ok(())
}
