// SPDX-License-Identifier: Apache-2.0

package perfdata

import "fmt"

// Features are the header's description of the machine and of the recording. Members
// that the file does not have are zero.
type Features struct {
	BuildIDs      []BuildID
	Hostname      string
	OSRelease     string
	Version       string // of perf
	Arch          string // as printed by uname -m
	CPUsOnline    uint32
	CPUsAvailable uint32
	CPUDesc       string
	CPUID         string
	TotalMemory   uint64 // bytes
	CmdLine       []string
	// FirstSample and LastSample are times of samples.
	FirstSample, LastSample uint64
	// ClockResolution is the resolution of the clock of -k, in nanoseconds.
	ClockResolution uint64
	// WallClock and Clock are one moment, in nanoseconds since 1970 and by the
	// clock ClockID, which is the clock of Sample.Time.
	WallClock, Clock uint64
	ClockID          uint32
	// Meta are facts that simpleperf recorded, and Files its symbols of files.
	Meta  map[string]string
	Files []FileSymbols
}

// BuildID is the build ID of a file, as perf found it when the recording ended.
type BuildID struct {
	PID  int // -1 for the host
	Mode Mode
	ID   []byte
	Path string
}

// The numbers of features (tools/perf/util/header.h).
const (
	featureTracing    = 1
	featureBuildID    = 2
	featureHostname   = 3
	featureOSRelease  = 4
	featureVersion    = 5
	featureArch       = 6
	featureCPUs       = 7
	featureCPUDesc    = 8
	featureCPUID      = 9
	featureMemory     = 10
	featureCmdLine    = 11
	featureEventDesc  = 12
	featureSampleTime = 21
	featureClockID    = 23
	featureDirFormat  = 24
	featureClockData  = 29

	maxFeatures = 256
	maxBuildIDs = 1 << 18
	maxStrings  = 1 << 16
)

// readFeature reads a feature; features of unknown numbers are skipped.
func (f *File) readFeature(number int, data []byte) error {
	d := fields{b: data, order: f.order}
	x := &f.features
	switch number {
	case featureTracing:
		return f.readTracing(data)
	case featureBuildID:
		return f.readBuildIDs(data)
	case featureHostname:
		x.Hostname = d.text()
	case featureOSRelease:
		x.OSRelease = d.text()
	case featureVersion:
		x.Version = d.text()
	case featureArch:
		x.Arch = d.text()
	case featureCPUs:
		// perf writes them in this order, which its document has reversed.
		x.CPUsAvailable, x.CPUsOnline = d.u32(), d.u32()
	case featureCPUDesc:
		x.CPUDesc = d.text()
	case featureCPUID:
		x.CPUID = d.text()
	case featureMemory:
		x.TotalMemory = d.u64()
	case featureCmdLine:
		x.CmdLine = nil
		for n := d.u32(); n > 0 && !d.isShort && len(x.CmdLine) < maxStrings; n-- {
			if s := d.text(); !d.isShort {
				x.CmdLine = append(x.CmdLine, s)
			}
		}
	case featureEventDesc:
		return f.readEventDesc(&d)
	case featureSampleTime:
		x.FirstSample, x.LastSample = d.u64(), d.u64()
	case featureDirFormat:
		if version := d.u64(); version != dirFormat && !d.isShort {
			return fmt.Errorf("a directory in the format %d, expected %d", version, dirFormat)
		}
	case featureClockID:
		x.ClockResolution = d.u64()
	case featureClockData:
		d.u32() // version
		x.ClockID, x.WallClock, x.Clock = d.u32(), d.u64(), d.u64()
	default:
		if number >= featureFile {
			return f.readSimpleperf(number, data)
		}
	}
	if d.isShort {
		return errShort
	}
	return nil
}

// readBuildIDs reads the table of build IDs, which has records of its own type.
func (f *File) readBuildIDs(data []byte) error {
	a := area{data: data, order: f.order}
	var r record
	for offset := uint64(0); ; {
		next, done, err := a.next(offset, &r)
		if err != nil {
			return fmt.Errorf("offset %#x of the table: %w", offset, err)
		}
		if done {
			return nil
		}
		if err := f.addBuildID(&r); err != nil {
			return fmt.Errorf("offset %#x of the table: %w", offset, err)
		}
		offset = next
	}
}

// addBuildID reads a build_id_event: the process, 20 bytes of ID, its size and
// padding, and the path.
func (f *File) addBuildID(r *record) error {
	d := fields{b: r.data[recordHeader:], order: f.order}
	b := BuildID{PID: int(int32(d.u32())), Mode: Mode(r.misc & miscModeMask)}
	id := d.bytes(24)
	if d.isShort {
		return fmt.Errorf("a build ID's record of %d bytes, expected 36 at least", len(r.data))
	}
	if len(f.features.BuildIDs) >= maxBuildIDs {
		return fmt.Errorf("more than %d build IDs", maxBuildIDs)
	}
	size := 20
	if r.misc&miscBuildIDSize != 0 {
		if size = int(id[20]); size == 0 || size > 20 {
			return fmt.Errorf("a build ID of %d bytes, expected 1 to 20", size)
		}
	}
	if size == 20 && [4]byte(id[16:20]) == [4]byte{} {
		size = 16 // of Clang and of Android, padded
	}
	b.ID = append([]byte(nil), id[:size]...)
	b.Path = text(d.b)
	f.features.BuildIDs = append(f.features.BuildIDs, b)
	if f.buildIDs == nil {
		f.buildIDs = map[string][]byte{}
	}
	f.buildIDs[b.Path] = b.ID
	return nil
}

// readEventDesc reads the names of events and, in files that have them nowhere
// else, their ids. The events are in the order of the attributes.
func (f *File) readEventDesc(d *fields) error {
	count, size := d.u32(), d.u32()
	for i := range count {
		attr := d.bytes(uint64(size))
		ids := d.u32()
		name := d.text()
		list := d.bytes(8 * uint64(ids))
		if d.isShort {
			return fmt.Errorf("event %d of %d: %w", i, count, errShort)
		}
		if int(i) < len(f.attrs.list) {
			f.attrs.list[i].Name = name
			f.attrs.addIDs(int(i), f.order, list)
			continue
		}
		if f.isPipe { // HEADER_ATTR follows
			if len(f.names) < maxAttrs {
				f.names = append(f.names, name)
			}
			continue
		}
		a, err := readAttr(f.order, attr)
		if err == nil {
			a.Name = name
			err = f.attrs.add(a, f.order, list)
		}
		if err != nil {
			return fmt.Errorf("event %d of %d: %w", i, count, err)
		}
	}
	return nil
}

// updateEvent reads an EVENT_UPDATE record that gives an event its name (type 2).
func (f *File) updateEvent(r *record) {
	d := fields{b: r.data[recordHeader:], order: f.order}
	kind, id := d.u64(), d.u64()
	index, ok := f.attrs.ids[id]
	if name := text(d.b); kind == 2 && ok && !d.isShort && name != "" {
		f.attrs.list[index].Name = name
	}
}
