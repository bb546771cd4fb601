//! Edges between numbered nodes, all in two arrays: a plan of ten thousand tasks costs a few allocations.

/// For each node the nodes that its edges lead to, ascending, each once.
#[derive(Clone, Debug)]
pub(crate) struct Edges {
    begin: Vec<usize>,
    to: Vec<usize>,
}

impl Edges {
    pub(crate) fn new(nodes: usize, mut pairs: Vec<(usize, usize)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut begin = Vec::with_capacity(nodes + 1);
        for node in 0..=nodes {
            begin.push(pairs.partition_point(|(from, _)| *from < node));
        }
        Self { begin, to: pairs.into_iter().map(|(_, to)| to).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.begin.len() - 1
    }

    pub(crate) fn of(&self, node: usize) -> &[usize] {
        &self.to[self.begin[node]..self.begin[node + 1]]
    }

    /// The same edges, from their ends to their begins.
    pub(crate) fn reversed(&self) -> Self {
        let pairs = (0..self.len()).flat_map(|from| self.of(from).iter().map(move |to| (*to, from)));
        Self::new(self.len(), pairs.collect())
    }
}
