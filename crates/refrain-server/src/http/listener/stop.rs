//! How whatever runs beside the server learns that it is to stop.

use tokio::sync::watch;

/// Becomes true when all that runs beside the server is to stop.
pub type Stop = watch::Receiver<bool>;

/// Comes back once it is time to stop.
pub(crate) async fn stopped(stop: &mut Stop) {
    // Whoever would say so may be gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
