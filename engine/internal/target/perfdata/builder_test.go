// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"testing"
)

// builder writes recordings that cannot be made here.
type builder struct {
	order   binary.AppendByteOrder
	pipe    bool
	attrs   []Attr
	ids     [][]uint64
	records bytes.Buffer
	feature map[int][]byte
}

func newBuilder(big bool, attrs ...Attr) *builder {
	b := &builder{order: binary.LittleEndian, attrs: attrs, feature: map[int][]byte{}}
	if big {
		b.order = binary.BigEndian
	}
	for i := range attrs {
		b.ids = append(b.ids, []uint64{uint64(100 + i), uint64(200 + i)})
	}
	b.feature[featureHostname] = b.pack(uint32(8), []byte("machine\x00"))
	return b
}

// pack writes numbers in the byte order, and bytes as they are.
func (b *builder) pack(values ...any) []byte {
	var out []byte
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			out = append(out, v...)
		case string:
			out = append(out, v...)
			out = append(out, make([]byte, 8-len(v)%8)...)
		case uint8:
			out = append(out, v)
		case uint16:
			out = b.order.AppendUint16(out, v)
		case uint32:
			out = b.order.AppendUint32(out, v)
		case int32:
			out = b.order.AppendUint32(out, uint32(v))
		case uint64:
			out = b.order.AppendUint64(out, v)
		case []uint64:
			for _, w := range v {
				out = b.order.AppendUint64(out, w)
			}
		default:
			panic("pack: a type that it does not know")
		}
	}
	return out
}

func (b *builder) record(kind RecordType, misc uint16, values ...any) []byte {
	body := b.pack(values...)
	return append(b.pack(uint32(kind), misc, uint16(8+len(body))), body...)
}

func (b *builder) add(kind RecordType, misc uint16, values ...any) *builder {
	b.records.Write(b.record(kind, misc, values...))
	return b
}

func (b *builder) attr(a *Attr) []byte {
	flags := uint64(a.Flags)
	if b.order == binary.AppendByteOrder(binary.BigEndian) {
		precise := flags >> 15 & 3
		flags = bits.Reverse64(flags&^(3<<15)) | precise<<47
	}
	return b.pack(a.Type, uint32(128), a.Config, a.SamplePeriod, uint64(a.SampleType), a.ReadFormat, flags, uint64(0),
		a.Config1, a.Config2, a.BranchSampleType, a.SampleRegsUser, a.SampleStackUser, a.ClockID, a.SampleRegsIntr,
		make([]byte, 24))
}

func (b *builder) magic() []byte { return b.pack(uint64(0x32454c4946524550)) }

func (b *builder) bytes() []byte {
	if b.pipe {
		out := append(b.magic(), b.pack(uint64(pipeHeader))...)
		for i := range b.attrs {
			out = append(out, b.record(recordAttr, 0, b.attr(&b.attrs[i]), b.ids[i])...)
		}
		for number := range maxFeatures {
			if data, ok := b.feature[number]; ok {
				out = append(out, b.record(recordFeature, 0, uint64(number), data)...)
			}
		}
		return append(out, b.records.Bytes()...)
	}
	at := uint64(fileHeader)
	var ids, attrs []byte
	for _, list := range b.ids {
		ids = append(ids, b.pack(list)...)
	}
	where := at
	for i := range b.attrs {
		attrs = append(attrs, b.attr(&b.attrs[i])...)
		attrs = append(attrs, b.pack(where, uint64(8*len(b.ids[i])))...)
		where += uint64(8 * len(b.ids[i]))
	}
	attrsAt := at + uint64(len(ids))
	dataAt := attrsAt + uint64(len(attrs))
	out := append(b.magic(), b.pack(uint64(fileHeader), uint64(144), attrsAt, uint64(len(attrs)), dataAt, uint64(b.records.Len()), uint64(0), uint64(0))...)
	var present [4]uint64
	count := 0
	for number := range b.feature {
		present[number/64] |= 1 << (number % 64)
		count++
	}
	out = append(out, b.pack(present[:])...)
	out = append(out, ids...)
	out = append(out, attrs...)
	out = append(out, b.records.Bytes()...)
	where = uint64(len(out) + 16*count)
	var contents []byte
	for number := range maxFeatures {
		if data, ok := b.feature[number]; ok {
			out = append(out, b.pack(where+uint64(len(contents)), uint64(len(data)))...)
			contents = append(contents, data...)
		}
	}
	return append(out, contents...)
}

// simple is an event with the fields that most have.
func simple() Attr {
	return Attr{
		Name: "", Type: 1, SamplePeriod: 7, Flags: FlagSampleIDAll | FlagMmap2 | FlagCommExec,
		SampleType: SampleIdentifier | SampleIP | SampleTID | SampleTime,
	}
}

// tail is the sample_id of an event of simple.
func tail(pid, tid uint32, time uint64) []any { return []any{pid, tid, time, uint64(100)} }

func (b *builder) sample(pid, tid uint32, time uint64) *builder {
	return b.add(recordSample, uint16(ModeUser), uint64(100), 0x1000+time, pid, tid, time)
}

func (b *builder) comm(pid, tid uint32, time uint64, name string, misc uint16) *builder {
	return b.add(recordComm, misc, append([]any{pid, tid, name}, tail(pid, tid, time)...)...)
}

func (b *builder) fork(pid, ppid, tid, ptid uint32, time uint64, misc uint16) *builder {
	return b.add(recordFork, misc, append([]any{pid, ppid, tid, ptid, time}, tail(pid, tid, time)...)...)
}

func (b *builder) exit(pid, tid uint32, time uint64) *builder {
	return b.add(recordExit, 0, append([]any{pid, pid, tid, tid, time}, tail(pid, tid, time)...)...)
}

func (b *builder) mmap2(pid uint32, time, start, size, offset uint64, prot uint32, path string, misc uint16) *builder {
	return b.add(recordMmap2, misc|uint16(ModeUser), append([]any{pid, pid, start, size, offset, uint32(8), uint32(1), uint64(99), uint64(0), prot, uint32(2), path}, tail(pid, pid, time)...)...)
}

// parse opens bytes.
func parse(t testing.TB, data []byte) *File {
	t.Helper()
	f := &File{path: "test", maxRuns: MaxRuns}
	if err := f.open(data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// collect reads all samples and keeps them.
func collect(t testing.TB, data []byte) (*File, []Sample, *Reader) {
	t.Helper()
	f := parse(t, data)
	r := f.Reader()
	return f, drain(t, r), r
}
