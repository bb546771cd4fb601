use refrain_store::LoopDir;
use refrain_store::project::inbox::WakePipe;
use tokio::net::unix::pipe;

use crate::EngineError;

pub(crate) fn install_doorbell(dir: &LoopDir) -> Result<pipe::Receiver, EngineError> {
    pipe::OpenOptions::new()
        .read_write(true)
        .open_receiver(WakePipe::install(dir)?)
        .map_err(|error| EngineError::Process("the doorbell cannot be opened", error))
}
