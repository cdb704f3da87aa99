// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/object"
)

// ProfileFormat is the format of a profile that Profile names.
type ProfileFormat int

// The formats. Either may be packed with gzip. OpenTelemetry's may be several messages with the size of each
// before it, in four bytes, the highest first.
const (
	ProfileOTLP  ProfileFormat = iota + 1 // ProfilesData, or ExportProfilesServiceRequest
	ProfilePprof                          // profile.proto
)

// ProfileOptions are the options of naming a profile.
type ProfileOptions struct {
	// Format is the format of the profile; 0: its first bytes tell.
	Format ProfileFormat
	// Finder finds the files of its mappings.
	Finder object.Finder
	// MaxUnpacked bounds the bytes of a packed profile; 0: 1 GiB.
	MaxUnpacked uint64
}

// NamedProfile counts the frames of a profile: its locations, each of which is in any number of stacks.
type NamedProfile struct {
	HadNames int // frames that had names, which are left as they are
	Named    int // frames with names from files
	Unnamed  int // frames that still have none
	// Reasons counts those by the kinds of reasons below.
	Reasons map[string]int
	// Problems tell why frames have no names, a sentence for each reason and mapping, the most frames first.
	Problems []string
}

// The kinds of reasons for which frames have no names.
const (
	UnnamedRuntime    = "runtime"     // a language runtime runs them
	UnnamedNoMapping  = "no-mapping"  // they are in no mapping
	UnnamedNoID       = "no-build-id" // their mapping has no build ID
	UnnamedNoFile     = "no-file"     // there is no file of that build ID, or it is damaged
	UnnamedNoPlace    = "no-place"    // it is not known where in their file they are
	UnnamedNoFunction = "no-function" // no function is there
	UnnamedNoRoom     = "no-room"     // the answer would be too large
)

// Profile writes a profile, with functions, lines and inlined calls for the frames that have none, in the
// format that it has. Frames with names, samples and whatever is unknown are written as they are. Each frame
// is looked up by its address as it is: profiles have an address inside the call for callers.
//
// Names are those that llvm-symbolizer has. Files and names are kept for later profiles; a file that was
// missing is looked for again ten times as long after that as the search took, a minute at most. Profiles are named one
// after the other. The error names the field of a profile that is damaged.
func (s *Symbolizer) Profile(ctx context.Context, w io.Writer, data []byte, o ProfileOptions) (NamedProfile, error) {
	s.profiles.mu.Lock()
	defer s.profiles.mu.Unlock()
	s.profiles.clock++
	n := &profileNamer{s: s, known: &s.profiles, finder: o.Finder, unnamed: map[unnamed]int{}}
	n.done.Reasons = map[string]int{}
	err := object.Guard(func() error { return n.write(ctx, w, data, &o) })
	n.known.shrink()
	n.count()
	return n.done, err
}

// ProfileFile is Profile for a file, which may be a pipe. The error names it.
func (s *Symbolizer) ProfileFile(ctx context.Context, w io.Writer, f *os.File, name string, o ProfileOptions) (n NamedProfile, err error) {
	var data []byte
	if info, statErr := f.Stat(); statErr == nil && info.Mode().IsRegular() {
		m, err := object.MapFile(f, name)
		if err != nil {
			return n, err
		}
		defer m.Close()
		data = m.Data()
	} else if data, err = io.ReadAll(f); err != nil {
		return n, fmt.Errorf("%s: %w", name, err)
	}
	if n, err = s.Profile(ctx, w, data, o); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return n, err
}

// errNoProfile is the error of a file that is no profile.
var errNoProfile = errors.New("expected a profile of OpenTelemetry (ProfilesData) or of pprof (profile.proto), as it is or packed with gzip")

// write unpacks and names a profile, and packs it again.
func (n *profileNamer) write(ctx context.Context, w io.Writer, data []byte, o *ProfileOptions) error {
	if !bytes.HasPrefix(data, gzipMagic) {
		return n.writeUnpacked(ctx, w, data, o.Format)
	}
	data, err := unpacked(data, o.MaxUnpacked)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	return errors.Join(n.writeUnpacked(ctx, z, data, o.Format), z.Close())
}

var gzipMagic = []byte{0x1f, 0x8b}

// The bounds of a packed profile.
const (
	defaultUnpacked = 1 << 30
	// maxRatio is how many times its size a packed profile may unpack to, beyond freeUnpacked bytes. Profiles
	// pack to a tenth or so.
	maxRatio     = 64
	freeUnpacked = 16 << 20
)

// unpacked unpacks a profile.
func unpacked(data []byte, most uint64) ([]byte, error) {
	if most == 0 {
		most = defaultUnpacked
	}
	most = min(most, freeUnpacked+maxRatio*uint64(len(data)))
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it begins as gzip does: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, int64(min(most, 1<<62))+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("gzip, after %d bytes of the profile: %w", len(out), err)
	case uint64(len(out)) > most:
		return nil, fmt.Errorf("gzip: it unpacks to more than %d bytes. Send it in parts, or as it is", most)
	}
	return out, nil
}

// writeUnpacked names the messages of a profile.
func (n *profileNamer) writeUnpacked(ctx context.Context, w io.Writer, data []byte, format ProfileFormat) error {
	if format == 0 {
		if format = profileFormatOf(data); format == 0 {
			return errNoProfile
		}
	}
	if format == ProfilePprof {
		return n.message(ctx, w, data, profilenames.Pprof)
	}
	if !isFramed(data) {
		return n.message(ctx, w, data, profilenames.OTLP)
	}
	var out bytes.Buffer
	for offset := 0; offset < len(data); {
		if len(data)-offset < frameSize || uint64(binary.BigEndian.Uint32(data[offset:])) > uint64(len(data)-offset-frameSize) {
			return fmt.Errorf("offset %#x: expected the size of a message, in %d bytes, and the message", offset, frameSize)
		}
		end := offset + frameSize + int(binary.BigEndian.Uint32(data[offset:]))
		out.Reset()
		out.Write(make([]byte, frameSize))
		if err := n.message(ctx, &out, data[offset+frameSize:end], profilenames.OTLP); err != nil {
			return fmt.Errorf("message at offset %#x: %w", offset, err)
		}
		binary.BigEndian.PutUint32(out.Bytes(), uint32(out.Len()-frameSize))
		if _, err := w.Write(out.Bytes()); err != nil {
			return err
		}
		offset = end
	}
	return nil
}

// frameSize is how many bytes the size of a message has.
const frameSize = 4

// isFramed reports whether bytes are messages with their sizes: a message begins with one of its two fields,
// and the sizes of messages below 160 MiB do not.
func isFramed(data []byte) bool {
	return len(data) > frameSize && uint64(binary.BigEndian.Uint32(data)) <= uint64(len(data)-frameSize) && !isOTLP(data) && isOTLP(data[frameSize:])
}

// isOTLP reports whether bytes begin as a ProfilesData.
func isOTLP(data []byte) bool {
	const resources, dictionary = 1, 2
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || kind != protowire.BytesType || number != resources && number != dictionary {
		return false
	}
	_, size := protowire.ConsumeBytes(data[n:])
	return size > 0
}

// profileFormatOf tells a format by its bytes; 0: neither. Writers of pprof begin with a type of samples, which
// is one or two numbers, or with the type of the period.
func profileFormatOf(data []byte) ProfileFormat {
	const periodType = 11<<3 | 2
	switch {
	case isValueType(data), len(data) > 0 && data[0] == periodType:
		return ProfilePprof
	case isFramed(data), isOTLP(data):
		return ProfileOTLP
	}
	return 0
}

// isValueType reports whether bytes begin with a type of samples of pprof: one or two numbers.
func isValueType(data []byte) bool {
	const tag, typeTag, unitTag = 1<<3 | 2, 1 << 3, 2 << 3
	if len(data) < 2 || data[0] != tag {
		return false
	}
	body, size := protowire.ConsumeBytes(data[1:])
	return size > 0 && len(body) <= 22 && (len(body) == 0 || body[0] == typeTag || body[0] == unitTag)
}
