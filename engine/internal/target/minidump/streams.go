// SPDX-License-Identifier: Apache-2.0

package minidump

import "fmt"

// Stream is an entry of the directory (MINIDUMP_DIRECTORY).
type Stream struct {
	Type   StreamType
	Size   uint64 // in bytes
	Offset uint64 // in the file
}

// StreamType is the type of a stream's contents (MINIDUMP_STREAM_TYPE).
type StreamType uint32

// The streams: of dbghelp, Crashpad (0x4350), Breakpad (0x4767), Chromium (0x4b6b), LLDB
// (0x4c4c), Mozilla (0x4d7a).
const (
	StreamUnused              StreamType = 0
	StreamThreadList          StreamType = 3
	StreamModuleList          StreamType = 4
	StreamMemoryList          StreamType = 5
	StreamException           StreamType = 6
	StreamSystemInfo          StreamType = 7
	StreamThreadExList        StreamType = 8
	StreamMemory64List        StreamType = 9
	StreamCommentA            StreamType = 10
	StreamCommentW            StreamType = 11
	StreamHandleData          StreamType = 12
	StreamFunctionTable       StreamType = 13
	StreamUnloadedModuleList  StreamType = 14
	StreamMiscInfo            StreamType = 15
	StreamMemoryInfoList      StreamType = 16
	StreamThreadInfoList      StreamType = 17
	StreamHandleOperationList StreamType = 18
	StreamToken               StreamType = 19
	StreamJavaScriptData      StreamType = 20
	StreamSystemMemoryInfo    StreamType = 21
	StreamProcessVMCounters   StreamType = 22
	StreamIptTrace            StreamType = 23
	StreamThreadNames         StreamType = 24
	StreamCrashpadInfo        StreamType = 0x43500001
	StreamBreakpadInfo        StreamType = 0x47670001
	StreamAssertionInfo       StreamType = 0x47670002
	StreamLinuxCPUInfo        StreamType = 0x47670003
	StreamLinuxProcStatus     StreamType = 0x47670004
	StreamLinuxLSBRelease     StreamType = 0x47670005
	StreamLinuxCommandLine    StreamType = 0x47670006
	StreamLinuxEnviron        StreamType = 0x47670007
	StreamLinuxAuxv           StreamType = 0x47670008
	StreamLinuxMaps           StreamType = 0x47670009
	StreamLinuxDSODebug       StreamType = 0x4767000a
	StreamLinuxProcStat       StreamType = 0x4767000b
	StreamLinuxProcUptime     StreamType = 0x4767000c
	StreamLinuxProcFD         StreamType = 0x4767000d
	StreamStabilityReport     StreamType = 0x4b6b0002
	StreamLLDBGenerated       StreamType = 0x4c4c4442
	StreamMozMacCrashInfo     StreamType = 0x4d7a0001
	StreamMozMacBootArgs      StreamType = 0x4d7a0002
	StreamMozLinuxLimits      StreamType = 0x4d7a0003
	StreamMozSoftErrors       StreamType = 0x4d7a0004
)

var streamNames = map[StreamType]string{
	StreamUnused:              "Unused",
	StreamThreadList:          "ThreadList",
	StreamModuleList:          "ModuleList",
	StreamMemoryList:          "MemoryList",
	StreamException:           "Exception",
	StreamSystemInfo:          "SystemInfo",
	StreamThreadExList:        "ThreadExList",
	StreamMemory64List:        "Memory64List",
	StreamCommentA:            "CommentA",
	StreamCommentW:            "CommentW",
	StreamHandleData:          "HandleData",
	StreamFunctionTable:       "FunctionTable",
	StreamUnloadedModuleList:  "UnloadedModuleList",
	StreamMiscInfo:            "MiscInfo",
	StreamMemoryInfoList:      "MemoryInfoList",
	StreamThreadInfoList:      "ThreadInfoList",
	StreamHandleOperationList: "HandleOperationList",
	StreamToken:               "Token",
	StreamJavaScriptData:      "JavaScriptData",
	StreamSystemMemoryInfo:    "SystemMemoryInfo",
	StreamProcessVMCounters:   "ProcessVmCounters",
	StreamIptTrace:            "IptTrace",
	StreamThreadNames:         "ThreadNames",
	StreamCrashpadInfo:        "CrashpadInfo",
	StreamBreakpadInfo:        "BreakpadInfo",
	StreamAssertionInfo:       "AssertionInfo",
	StreamLinuxCPUInfo:        "LinuxCPUInfo",
	StreamLinuxProcStatus:     "LinuxProcStatus",
	StreamLinuxLSBRelease:     "LinuxLSBRelease",
	StreamLinuxCommandLine:    "LinuxCMDLine",
	StreamLinuxEnviron:        "LinuxEnviron",
	StreamLinuxAuxv:           "LinuxAuxv",
	StreamLinuxMaps:           "LinuxMaps",
	StreamLinuxDSODebug:       "LinuxDSODebug",
	StreamLinuxProcStat:       "LinuxProcStat",
	StreamLinuxProcUptime:     "LinuxProcUptime",
	StreamLinuxProcFD:         "LinuxProcFD",
	StreamStabilityReport:     "StabilityReport",
	StreamLLDBGenerated:       "LLDBGenerated",
	StreamMozMacCrashInfo:     "MozMacosCrashInfo",
	StreamMozMacBootArgs:      "MozMacosBootargs",
	StreamMozLinuxLimits:      "MozLinuxLimits",
	StreamMozSoftErrors:       "MozSoftErrors",
}

// String returns the name of a stream in the format's documents, or its number where
// they have none.
func (t StreamType) String() string {
	if name, ok := streamNames[t]; ok {
		return name
	}
	return fmt.Sprintf("%#x", uint32(t))
}

// readers read the streams. Streams without a reader are there as bytes (Dump.Data).
var readers = map[StreamType]func(*Dump, *Stream){
	StreamThreadList:         func(d *Dump, s *Stream) { d.readThreads(s, threadSize) },
	StreamThreadExList:       func(d *Dump, s *Stream) { d.readThreads(s, threadExSize) },
	StreamModuleList:         (*Dump).readModules,
	StreamMemoryList:         (*Dump).readMemoryList,
	StreamException:          (*Dump).readException,
	StreamMemory64List:       (*Dump).readMemory64List,
	StreamCommentA:           func(d *Dump, s *Stream) { d.CommentA = narrow(d.bounded(s).b) },
	StreamCommentW:           func(d *Dump, s *Stream) { d.CommentW = d.bounded(s).wide() },
	StreamHandleData:         (*Dump).readHandles,
	StreamUnloadedModuleList: (*Dump).readUnloadedModules,
	StreamMiscInfo:           (*Dump).readMisc,
	StreamMemoryInfoList:     (*Dump).readMemoryInfo,
	StreamThreadInfoList:     (*Dump).readThreadInfo,
	StreamThreadNames:        (*Dump).readThreadNames,
	StreamCrashpadInfo:       (*Dump).readCrashpad,
	StreamBreakpadInfo:       (*Dump).readBreakpad,
	StreamAssertionInfo:      (*Dump).readAssertion,
	StreamLinuxCPUInfo:       func(d *Dump, s *Stream) { d.Linux.CPUInfo = d.stream(s).b },
	StreamLinuxProcStatus:    func(d *Dump, s *Stream) { d.Linux.Status = d.stream(s).b },
	StreamLinuxLSBRelease:    func(d *Dump, s *Stream) { d.Linux.LSBRelease = d.stream(s).b },
	StreamLinuxCommandLine:   func(d *Dump, s *Stream) { d.Linux.CommandLine = split(d.bounded(s).b) },
	StreamLinuxEnviron:       func(d *Dump, s *Stream) { d.Linux.Environ = split(d.bounded(s).b) },
	StreamLinuxAuxv:          func(d *Dump, s *Stream) { d.Linux.auxv = d.stream(s).b },
	StreamLinuxMaps:          (*Dump).readMaps,
	StreamLinuxDSODebug:      (*Dump).readDSODebug,
	StreamMozLinuxLimits:     func(d *Dump, s *Stream) { d.Linux.Limits = d.stream(s).b },
}

// bounded returns the bytes of a stream whose text is copied.
func (d *Dump) bounded(s *Stream) record {
	r := d.stream(s)
	if len(r.b) > maxText {
		d.problem(s, 0, "it has %d bytes of text, %d are read", len(r.b), maxText)
		r.b = r.b[:maxText]
	}
	return r
}
