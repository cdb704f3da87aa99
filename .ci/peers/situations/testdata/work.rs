// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[inline(never)]
fn count(words: &[String]) -> usize {
    let mut seen = BTreeMap::new();
    for w in words {
        *seen.entry(w.as_str()).or_insert(0) += 1;
    }
    seen.len()
}

fn main() {
    let words: Vec<String> = (0..5000).map(|i| format!("word{}", i * 7919 % 1000)).collect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        assert_eq!(count(&words), 1000);
    }
}
