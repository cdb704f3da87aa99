// SPDX-License-Identifier: Apache-2.0

package minidump

// Misc is MINIDUMP_MISC_INFO, up to its fifth version. Members whose flag is not set
// are 0.
type Misc struct {
	Size, Flags          uint32 // MINIDUMP_MISC1_* and the flags of later versions
	ProcessID            uint32 // MiscProcessID
	CreateTime           uint32 // MiscProcessTimes: in seconds since 1970
	UserTime, KernelTime uint32 // MiscProcessTimes: in seconds
	Power                Power  // MiscPower
	IntegrityLevel       uint32 // MiscIntegrity
	ExecuteFlags         uint32 // MiscExecuteFlags
	ProtectedProcess     uint32 // MiscProtected
	TimeZoneID           uint32 // MiscTimeZone: 1 standard time, 2 daylight saving time
	TimeZone             TimeZone
	BuildString          string         // MiscBuildString: of the operating system
	DebugBuildString     string         // MiscBuildString: of the debugging library
	XStateSize           uint32         // of the description itself
	XStateContextSize    uint32         // of contexts
	XStateFeatures       uint64         // which of XState are enabled; bit 63: the areas are compacted
	XState               [64]XStatePart // of the processor, by number
	ProcessCookie        uint32         // MiscCookie
}

// Power is the state of the processors, in MHz.
type Power struct{ MaxMHz, CurrentMHz, LimitMHz, MaxIdleState, CurrentIdleState uint32 }

// XStatePart is the place of a part of the processor's extended state in an XSAVE
// area that is not compacted.
type XStatePart struct{ Offset, Size uint32 }

// TimeZone is TIME_ZONE_INFORMATION. Biases are in minutes: UTC is the local time
// plus them.
type TimeZone struct {
	Bias, StandardBias, DaylightBias int32
	StandardName, DaylightName       string
	StandardDate, DaylightDate       SystemTime
}

// SystemTime is SYSTEMTIME.
type SystemTime struct{ Year, Month, DayOfWeek, Day, Hour, Minute, Second, Milliseconds uint16 }

// The flags of Misc.
const (
	MiscProcessID    = 0x1
	MiscProcessTimes = 0x2
	MiscPower        = 0x4
	MiscIntegrity    = 0x10
	MiscExecuteFlags = 0x20
	MiscTimeZone     = 0x40
	MiscProtected    = 0x80
	MiscBuildString  = 0x100
	MiscCookie       = 0x200
)

// The offsets at which later versions of the structure begin.
const (
	misc1Size = 24
	misc4     = 232
	misc5     = 832
	misc5Size = 1364
)

func (d *Dump) readMisc(s *Stream) {
	r, ok := d.fixed(s, misc1Size-12) // the first version has been seen without times
	if !ok {
		return
	}
	m := &Misc{Size: r.u32(0), Flags: r.u32(4)}
	// Bytes behind the size that the structure states do not belong to it.
	r.b = r.b[:min(uint64(len(r.b)), uint64(m.Size))]
	has := func(flag uint32) bool { return m.Flags&flag != 0 }
	if has(MiscProcessID) {
		m.ProcessID = r.u32(8)
	}
	if has(MiscProcessTimes) {
		m.CreateTime, m.UserTime, m.KernelTime = r.u32(12), r.u32(16), r.u32(20)
	}
	if has(MiscPower) {
		m.Power = Power{r.u32(24), r.u32(28), r.u32(32), r.u32(36), r.u32(40)}
	}
	if has(MiscIntegrity) {
		m.IntegrityLevel = r.u32(44)
	}
	if has(MiscExecuteFlags) {
		m.ExecuteFlags = r.u32(48)
	}
	if has(MiscProtected) {
		m.ProtectedProcess = r.u32(52)
	}
	if has(MiscTimeZone) {
		m.TimeZoneID, m.TimeZone = r.u32(56), r.timeZone(60)
	}
	if has(MiscBuildString) {
		m.BuildString = r.fixedWide(misc4, 520)
		m.DebugBuildString = r.fixedWide(misc4+520, 80)
	}
	if len(r.b) >= misc5Size {
		m.readXState(r.skip(misc5))
		if has(MiscCookie) {
			m.ProcessCookie = r.u32(misc5Size - 4)
		}
	}
	d.Misc = m
}

// readXState reads XSTATE_CONFIG_FEATURE_MSC_INFO.
func (m *Misc) readXState(r record) {
	m.XStateSize, m.XStateContextSize, m.XStateFeatures = r.u32(0), r.u32(4), r.u64(8)
	for i := range m.XState {
		m.XState[i] = XStatePart{r.u32(16 + 8*i), r.u32(20 + 8*i)}
	}
}

// fixedWide reads UTF-16 in a field of size bytes.
func (r record) fixedWide(offset, size int) string {
	f := r.skip(offset)
	f.b = f.b[:min(size, len(f.b))]
	return f.wide()
}

func (r record) timeZone(offset int) TimeZone {
	f := r.skip(offset)
	return TimeZone{
		Bias: int32(f.u32(0)), StandardName: f.fixedWide(4, 64), StandardDate: f.systemTime(68), StandardBias: int32(f.u32(84)),
		DaylightName: f.fixedWide(88, 64), DaylightDate: f.systemTime(152), DaylightBias: int32(f.u32(168)),
	}
}

func (r record) systemTime(offset int) SystemTime {
	f := r.skip(offset)
	return SystemTime{f.u16(0), f.u16(2), f.u16(4), f.u16(6), f.u16(8), f.u16(10), f.u16(12), f.u16(14)}
}
