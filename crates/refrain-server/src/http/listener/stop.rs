//! How tasks beside the server learn that they are to stop.

use tokio::sync::watch;

/// Becomes true when all tasks beside the server must stop.
pub type Stop = watch::Receiver<bool>;

/// Returns once it is time to stop.
pub(crate) async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
