// A program to record: JSON is made, written, read and changed by functions that
// call themselves and by closures, on two threads.
// rustwork SECONDS; the seconds are each thread's own on a processor.
// rustc -O -g rustwork.rs -o rustwork
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
#[repr(C)]
struct Timespec { sec: i64, nsec: i64 }
extern "C" { fn clock_gettime(clock: i32, t: *mut Timespec) -> i32; }
fn used() -> f64 { let mut t = Timespec { sec: 0, nsec: 0 }; unsafe { clock_gettime(3, &mut t) }; t.sec as f64 + t.nsec as f64 * 1e-9 } // CLOCK_THREAD_CPUTIME_ID
#[derive(Clone, Debug, PartialEq)]
enum J { Null, Bool(bool), Num(f64), Str(String), Arr(Vec<J>), Obj(BTreeMap<String, J>) }
struct P<'a> { s: &'a [u8], i: usize }
impl<'a> P<'a> {
    fn ws(&mut self) { while self.i < self.s.len() && self.s[self.i].is_ascii_whitespace() { self.i += 1 } }
    fn val(&mut self) -> Result<J, String> {
        self.ws();
        match self.s.get(self.i).copied().ok_or("eof")? {
            b'{' => self.obj(), b'[' => self.arr(), b'"' => Ok(J::Str(self.st()?)),
            b't' => { self.i += 4; Ok(J::Bool(true)) } b'f' => { self.i += 5; Ok(J::Bool(false)) } b'n' => { self.i += 4; Ok(J::Null) }
            _ => { let st = self.i; while self.i < self.s.len() && matches!(self.s[self.i], b'-' | b'+' | b'.' | b'e' | b'0'..=b'9') { self.i += 1 }
                std::str::from_utf8(&self.s[st..self.i]).map_err(|e| e.to_string())?.parse().map(J::Num).map_err(|e| format!("{e}")) }
        }
    }
    fn st(&mut self) -> Result<String, String> { self.i += 1; let st = self.i; while self.s[self.i] != b'"' { self.i += 1 } self.i += 1; Ok(String::from_utf8_lossy(&self.s[st..self.i - 1]).into_owned()) }
    fn arr(&mut self) -> Result<J, String> { self.i += 1; let mut v = vec![]; loop { self.ws(); if self.s[self.i] == b']' { self.i += 1; return Ok(J::Arr(v)) } v.push(self.val()?); self.ws(); if self.s[self.i] == b',' { self.i += 1 } } }
    fn obj(&mut self) -> Result<J, String> { self.i += 1; let mut m = BTreeMap::new(); loop { self.ws(); if self.s[self.i] == b'}' { self.i += 1; return Ok(J::Obj(m)) } let k = self.st()?; self.ws(); self.i += 1; let v = self.val()?; m.insert(k, v); self.ws(); if self.s[self.i] == b',' { self.i += 1 } } }
}
fn ser(j: &J, o: &mut String) { match j { J::Null => o.push_str("null"), J::Bool(b) => { let _ = write!(o, "{b}"); } J::Num(n) => { let _ = write!(o, "{n}"); } J::Str(s) => { let _ = write!(o, "\"{s}\""); }
    J::Arr(v) => { o.push('['); v.iter().enumerate().for_each(|(i, x)| { if i > 0 { o.push(',') } ser(x, o) }); o.push(']') }
    J::Obj(m) => { o.push('{'); m.iter().enumerate().for_each(|(i, (k, x))| { if i > 0 { o.push(',') } let _ = write!(o, "\"{k}\":"); ser(x, o) }); o.push('}') } } }
fn map(j: J, f: &dyn Fn(f64) -> f64) -> J { match j { J::Num(n) => J::Num(f(n)),
    J::Arr(v) => { let mut v: Vec<J> = v.into_iter().map(|x| map(x, f)).collect(); v.sort_by(|a, b| format!("{a:?}").len().cmp(&format!("{b:?}").len())); J::Arr(v) }
    J::Obj(m) => J::Obj(m.into_iter().map(|(k, x)| (k, map(x, f))).collect()), x => x } }
fn gen(seed: &mut u64, d: u32) -> J { *seed ^= *seed << 13; *seed ^= *seed >> 7; *seed ^= *seed << 17; let r = *seed; if d == 0 { return match r % 4 { 0 => J::Null, 1 => J::Bool(r & 8 > 0), 2 => J::Num((r % 10000) as f64 / 7.0), _ => J::Str(format!("s{}", r % 1000)) } }
    if r & 1 == 0 { J::Arr((0..1 + (r >> 8) % 3).map(|i| gen(seed, if i == 0 { d - 1 } else { d.min(4) - 1 })).collect()) } else { J::Obj((0..1 + (r >> 8) % 3).map(|i| (format!("k{i}"), gen(seed, if i == 0 { d - 1 } else { d.min(4) - 1 }))).collect()) } }
fn main() {
    let secs: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(20.0);
    let hs: Vec<_> = (0..2u64).map(|t| std::thread::spawn(move || { let mut seed = 88172645463325252 + t; let mut n: HashMap<usize, u64> = HashMap::new();
        while used() < secs { let j = gen(&mut seed, 24); let mut s = String::new(); ser(&j, &mut s); let k = P { s: s.as_bytes(), i: 0 }.val().unwrap(); let m = map(k, &|x| x.sqrt() + 1.0); let mut t = String::new(); ser(&m, &mut t); *n.entry(t.len() % 97).or_default() += 1; } n.values().sum::<u64>() })).collect();
    println!("{}", hs.into_iter().map(|h| h.join().unwrap()).sum::<u64>());
}
