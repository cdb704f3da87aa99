// SPDX-License-Identifier: Apache-2.0

//! Unwinds every sample of a perf.data of x86-64 with framehop, and prints how many samples
//! and frames there were, and how many stacks ended early; with -a each address instead, as
//! the offset in its file, and an empty line behind each sample.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::ops::Range;

use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use linux_perf_data::linux_perf_event_reader::{
    constants, CommOrExecRecord, EventRecord, ForkOrExitRecord, Mmap2Record, RawData, Regs,
    SampleRecord,
};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use object::{Object, ObjectSection, ObjectSegment};

type Bytes = &'static [u8];

/// A file that was mapped: a stretch of it becomes a module of each process that maps it.
struct Image {
    /// The ranges of the loaded segments: offset in the file, length, address.
    segments: Vec<(u64, u64, u64)>,
    sections: HashMap<&'static str, (Range<u64>, Bytes)>,
}

const SECTIONS: [&str; 5] = [".text", ".eh_frame", ".eh_frame_hdr", ".debug_frame", ".got"];

impl Image {
    fn parse(data: Bytes) -> Result<Image, object::Error> {
        let file = object::File::parse(data)?;
        let segments = file.segments();
        let mut image = Image {
            segments: segments.map(|s| (s.file_range().0, s.file_range().1, s.address())).collect(),
            sections: HashMap::new(),
        };
        for name in SECTIONS {
            if let Some(s) = file.section_by_name(name) {
                let range = s.address()..s.address() + s.size();
                image.sections.insert(name, (range, s.data().unwrap_or_default()));
            }
        }
        Ok(image)
    }

    /// The address of a byte of the file when it is loaded at 0.
    fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|s| (s.0..s.0 + s.1).contains(&offset))?;
        Some(offset - segment.0 + segment.2)
    }

    fn info(&self) -> ExplicitModuleSectionInfo<Bytes> {
        let range = |name| self.sections.get(name).map(|s| s.0.clone());
        let data = |name| self.sections.get(name).map(|s| s.1).filter(|d| !d.is_empty());
        ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: data(".text"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            got_svma: range(".got"),
            ..Default::default()
        }
    }
}

/// The code of the vDSO is that of this process: the recording is of this machine.
fn vdso() -> Option<Bytes> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|l| l.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    // SAFETY: the kernel maps these pages readable for as long as the process lives.
    Some(unsafe { std::slice::from_raw_parts(start as *const u8, end - start) })
}

fn map_file(path: &str) -> Option<Bytes> {
    if path == "[vdso]" {
        return vdso();
    }
    let file = File::open(path).ok()?;
    // SAFETY: nothing else writes to programs and libraries while this runs.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    Some(&*Box::leak(Box::new(map)))
}

/// What a process has mapped.
#[derive(Clone, Default)]
struct Process {
    unwinder: UnwinderX86_64<Bytes>,
    /// By start: the end, and the offset in the file.
    code: BTreeMap<u64, (u64, u64)>,
}

impl Process {
    fn offset(&self, address: u64) -> u64 {
        match self.code.range(..=address).next_back() {
            Some((start, (end, offset))) if address < *end => address - start + offset,
            _ => address,
        }
    }
}

/// The registers of framehop that perf has, in perf's order.
const REGISTERS: [(u64, Reg); 16] = [
    (constants::PERF_REG_X86_AX, Reg::RAX),
    (constants::PERF_REG_X86_BX, Reg::RBX),
    (constants::PERF_REG_X86_CX, Reg::RCX),
    (constants::PERF_REG_X86_DX, Reg::RDX),
    (constants::PERF_REG_X86_SI, Reg::RSI),
    (constants::PERF_REG_X86_DI, Reg::RDI),
    (constants::PERF_REG_X86_BP, Reg::RBP),
    (constants::PERF_REG_X86_SP, Reg::RSP),
    (constants::PERF_REG_X86_R8, Reg::R8),
    (constants::PERF_REG_X86_R9, Reg::R9),
    (constants::PERF_REG_X86_R10, Reg::R10),
    (constants::PERF_REG_X86_R11, Reg::R11),
    (constants::PERF_REG_X86_R12, Reg::R12),
    (constants::PERF_REG_X86_R13, Reg::R13),
    (constants::PERF_REG_X86_R14, Reg::R14),
    (constants::PERF_REG_X86_R15, Reg::R15),
];

/// All registers of a sample are kept, although framehop's rules use three.
fn registers(sample: &Regs) -> Option<UnwindRegsX86_64> {
    let ip = sample.get(constants::PERF_REG_X86_IP)?;
    let mut regs = UnwindRegsX86_64::new(ip, 0, 0);
    for (number, register) in REGISTERS {
        if let Some(value) = sample.get(number) {
            regs.set(register, value);
        }
    }
    Some(regs)
}

#[derive(Default)]
struct Recording {
    images: HashMap<Vec<u8>, Option<Image>>,
    processes: HashMap<i32, Process>,
    cache: CacheX86_64,
    stack: Vec<u64>,
    samples: u64,
    frames: u64,
    early: u64,
}

impl Recording {
    fn exec(&mut self, r: &CommOrExecRecord) {
        if r.is_execve {
            self.processes.insert(r.pid, Process::default());
        }
    }

    fn fork(&mut self, r: &ForkOrExitRecord) {
        if r.pid != r.ppid {
            let parent = self.processes.get(&r.ppid).cloned();
            self.processes.insert(r.pid, parent.unwrap_or_default());
        }
    }

    fn map(&mut self, r: &Mmap2Record) {
        const EXECUTABLE: u32 = 4;
        if r.protection & EXECUTABLE == 0 {
            return;
        }
        let path = r.path.as_slice().into_owned();
        let image = self.images.entry(path).or_insert_with_key(|path| {
            Image::parse(map_file(std::str::from_utf8(path).ok()?)?).ok()
        });
        let Some(image) = image else { return };
        let Some(address) = image.address(r.page_offset) else { return };
        let process = self.processes.entry(r.pid).or_default();
        let range = r.address..r.address.saturating_add(r.length);
        process.code.insert(range.start, (range.end, r.page_offset));
        let base = r.address.wrapping_sub(address);
        process.unwinder.add_module(Module::new(String::new(), range, base, image.info()));
    }

    /// Leaves the addresses of a sample in self.stack: the chain that the kernel walked, and
    /// what is unwound of the copy of the stack.
    fn sample(&mut self, r: &SampleRecord) {
        self.stack.clear();
        let chain = r.callchain.iter().flat_map(|c| (0..c.len()).filter_map(|i| c.get(i)));
        self.stack.extend(chain.filter(|&a| a < u64::MAX - 4095)); // above are its marks
        if let (Some(regs), Some((bytes, size))) = (&r.user_regs, &r.user_stack) {
            self.unwind(r.pid.unwrap_or_default(), regs, bytes, *size);
        }
        self.samples += 1;
        self.frames += self.stack.len() as u64;
    }

    fn unwind(&mut self, pid: i32, regs: &Regs, bytes: &RawData, size: u64) {
        let Some(regs) = registers(regs) else { return };
        let bytes = bytes.as_slice();
        let bytes = &bytes[..bytes.len().min(size as usize)];
        let sp = regs.sp();
        let mut read = |address: u64| {
            let at = address.wrapping_sub(sp) as usize;
            let word = bytes.get(at..at.wrapping_add(8)).ok_or(())?;
            Ok(u64::from_le_bytes(word.try_into().map_err(|_| ())?))
        };
        let unwinder = &self.processes.entry(pid).or_default().unwinder;
        let mut frames = unwinder.iter_frames(regs.ip(), regs, &mut self.cache, &mut read);
        loop {
            match frames.next() {
                Ok(Some(frame)) => self.stack.push(frame.address()),
                Ok(None) => return,
                Err(_) => {
                    self.early += 1;
                    return;
                }
            }
        }
    }

    fn print(&self, pid: i32, out: &mut Vec<u8>) {
        let process = self.processes.get(&pid);
        for &address in &self.stack {
            hex(out, process.map_or(address, |p| p.offset(address)));
        }
        out.push(b'\n');
    }
}

/// A line with a number.
fn hex(out: &mut Vec<u8>, number: u64) {
    let digits = (67 - (number | 1).leading_zeros()) / 4;
    for i in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * i) & 15) as usize]);
    }
    out.push(b'\n');
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let addresses = args.first().is_some_and(|a| a == "-a");
    if addresses {
        args.remove(0);
    }
    if args == ["--version"] {
        println!("framehop 0.16.0");
        return Ok(());
    }
    let [path] = &args[..] else {
        return Err("usage: framehop-perf [-a] FILE".into());
    };
    let reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let PerfFileReader { mut perf_file, mut record_iter } = PerfFileReader::parse_file(reader)?;
    let mut recording = Recording::default();
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut text = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        match record.parse()? {
            EventRecord::Comm(r) => recording.exec(&r),
            EventRecord::Fork(r) => recording.fork(&r),
            EventRecord::Mmap2(r) => recording.map(&r),
            EventRecord::Sample(r) => {
                recording.sample(&r);
                if addresses {
                    text.clear();
                    recording.print(r.pid.unwrap_or_default(), &mut text);
                    out.write_all(&text)?;
                }
            }
            _ => {}
        }
    }
    if !addresses {
        let Recording { samples, frames, early, .. } = recording;
        writeln!(out, "{samples} samples, {frames} frames, {early} stacks ended early")?;
    }
    Ok(out.flush()?)
}
