//! Sealing: the size and hash of a kept file when it is whole. `refrain verify` finds any byte that changes later.

use crate::event::Seal;

#[derive(Clone, Debug, Default)]
pub struct Sealing {
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Sealing {
    /// The seal of a whole text.
    pub fn of(bytes: &[u8]) -> Seal {
        let mut sealing = Self::default();
        sealing.add(bytes);
        sealing.done()
    }

    /// The next bytes of the file.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hasher.update(bytes);
    }

    pub fn done(&self) -> Seal {
        Seal { bytes: self.bytes, blake3: self.hasher.finalize().to_hex().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_does_not_depend_on_how_it_was_cut() {
        let (mut whole, mut parts) = (Sealing::default(), Sealing::default());
        whole.add(b"12 passed\n");
        b"12 passed\n".chunks(3).for_each(|part| parts.add(part));
        assert_eq!(whole.done(), parts.done());
        assert_eq!(whole.done().bytes, 10);
        assert_eq!(
            Sealing::default().done().blake3,
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
            "that of nothing, as it is published"
        );
    }
}
