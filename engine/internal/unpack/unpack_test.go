// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// contents is as a core is: words, zeros of many pages, and what does not pack.
func contents() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := []byte("\x7fELF\x02\x01\x01")
	for len(b) < 300_000 {
		b = fmt.Appendf(b, "word %d of a heap ", r.IntN(5000))
	}
	b = append(b, make([]byte, 3<<20+5)...)
	for range 200_000 {
		b = append(b, byte(r.Uint32()))
	}
	return b
}

// packers are the field's tools, as they are used.
var packers = []struct {
	name, tool string
	args       []string
}{
	{"gzip", "gzip", []string{"-c"}},
	{"gzip best", "gzip", []string{"-9", "-c"}},
	{"xz", "xz", []string{"-c"}},
	{"xz 9", "xz", []string{"-9", "-c"}},
	{"xz blocks", "xz", []string{"-c", "--block-size=200000", "-T2"}},
	{"xz crc32", "xz", []string{"-c", "--check=crc32"}},
	{"xz sha256", "xz", []string{"-c", "--check=sha256"}},
	{"xz none", "xz", []string{"-c", "--check=none"}},
	{"zstd", "zstd", []string{"-c"}},
	{"zstd ultra", "zstd", []string{"--ultra", "-22", "-c"}},
	{"zstd long", "zstd", []string{"--long=27", "-c"}},
	{"zstd no check", "zstd", []string{"--no-check", "-c"}},
	{"bzip2", "bzip2", []string{"-c"}},
	{"bzip2 fast", "bzip2", []string{"-1", "-c"}},
	{"lz4", "lz4", []string{"-c"}},
	{"lz4 linked", "lz4", []string{"-BD", "-B4", "-c"}},
	{"lz4 legacy", "lz4", []string{"-l", "-c"}},
	{"lz4 size", "lz4", []string{"--content-size", "-9", "-c"}},
}

// pack runs a tool over what it is given on its standard input.
func pack(t testing.TB, data []byte, tool string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, tool), args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened opens a file and compares what is in it.
func opened(t testing.TB, data, want []byte) *Input {
	t.Helper()
	in, err := Open(write(t, data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Mapping.Close() })
	if !bytes.Equal(in.Mapping.Data(), want) {
		t.Fatalf("%d bytes, expected %d; problems %v", len(in.Mapping.Data()), len(want), in.Problems)
	}
	return in
}

func TestWhatTheFieldsToolsPack(t *testing.T) {
	want := contents()
	for _, p := range packers {
		t.Run(p.name, func(t *testing.T) {
			packed := pack(t, want, p.tool, p.args...)
			if in := opened(t, packed, want); len(in.Problems) > 0 {
				t.Error(in.Problems)
			}
			// Two one after the other unpack to both, with every tool.
			if in := opened(t, append(bytes.Clone(packed), packed...), append(bytes.Clone(want), want...)); len(in.Problems) > 0 {
				t.Error("twice:", in.Problems)
			}
			// What was packed before a cut is there, and the cut is said.
			for _, n := range []int{len(packed) - 1, len(packed) * 9 / 10, len(packed) / 2} {
				in, err := Open(write(t, packed[:n]), Options{})
				if err != nil {
					if !strings.Contains(err.Error(), "cut") {
						t.Errorf("cut to %d of %d: %v", n, len(packed), err)
					}
					continue
				}
				got := in.Mapping.Data()
				isSaid := len(in.Problems) == 1 && strings.Contains(in.Problems[0], "cut")
				if !bytes.HasPrefix(want, got) || !isSaid && p.name != "lz4 legacy" { // which has no end
					t.Errorf("cut to %d of %d: %d bytes, problems %v", n, len(packed), len(got), in.Problems)
				}
				in.Mapping.Close()
			}
		})
	}
}

func TestDamageIsSaid(t *testing.T) {
	want := contents()
	for _, p := range packers {
		if p.name == "xz none" || p.name == "zstd no check" {
			continue // nobody can tell
		}
		packed := pack(t, want, p.tool, p.args...)
		// The last bytes do not pack, and are stored as they are: only checks tell there.
		for _, at := range []int{150_000, 3_000} {
			damaged := bytes.Clone(packed)
			damaged[len(damaged)-at] ^= 0x55
			in, err := Open(write(t, damaged), Options{})
			if err != nil {
				continue
			}
			if len(in.Problems) == 0 && p.name != "lz4 legacy" { // which has no check
				t.Errorf("%s: damage %d bytes before the end was not noticed: %d bytes", p.name, at, len(in.Mapping.Data()))
			}
			in.Mapping.Close()
		}
	}
}

func TestPackedSeveralTimes(t *testing.T) {
	want := contents()
	packed := want
	for _, tool := range []string{"zstd", "lz4", "xz", "gzip"} {
		packed = pack(t, packed, tool, "-c")
	}
	opened(t, packed, want)
	if _, err := Open(write(t, pack(t, packed, "gzip", "-c")), Options{}); err == nil || !strings.Contains(err.Error(), "more than 4 times") {
		t.Errorf("five layers: %v", err)
	}
}

func TestWhatIsNotPackedIsMappedAsItIs(t *testing.T) {
	want := contents()
	path := write(t, want)
	in, err := Open(path, Options{Dir: "/nowhere"})
	if err != nil || !bytes.Equal(in.Mapping.Data(), want) || in.Mapping.Path() != path {
		t.Fatal(err)
	}
	in.Mapping.Close()
}

func TestAPipeIsReadOnce(t *testing.T) {
	want := contents()
	for _, data := range [][]byte{want, pack(t, want, "zstd", "-c")} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = w.Write(data)
			w.Close()
		}()
		in, err := Read(r, "-", Options{Dir: t.TempDir()})
		if err != nil || !bytes.Equal(in.Mapping.Data(), want) || in.Mapping.Path() != "-" || len(in.Problems) > 0 {
			t.Fatal(err, in)
		}
		in.Mapping.Close()
		r.Close()
	}
}

// TestHolesStayHoles: zeros take no room, and nothing is left in the folder while the file
// is in use.
func TestHolesStayHoles(t *testing.T) {
	for _, create := range []func(dir string) (*os.File, error){Nameless, unlinked} {
		dir := t.TempDir()
		f, err := create(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := &spool{sink: &temporary{File: f}, maxSize: 1 << 40, maxStored: 1 << 30}
		const size = 1 << 30
		parts := io.MultiReader(strings.NewReader("head"), io.LimitReader(zeroReader{}, size), strings.NewReader("tail"))
		if err := s.fill(parts, &counter{n: 1}); err != nil || s.size != size+8 {
			t.Fatal(s.size, err)
		}
		if n := oracle.OnDisk(f); n > 64<<10 {
			t.Errorf("%d bytes on the disk", n)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 && runtime.GOOS != "windows" { // where it goes when it is closed
			t.Errorf("it has a name: %v", left)
		}
		f.Close()
	}
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// patternReader is what a bomb unpacks to when it knows of holes.
type patternReader struct{}

func (patternReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0xa5
	}
	return len(b), nil
}

func TestBombs(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   io.Reader
		size int64
		o    Options
		want string
		got  int
	}{
		{"zeros beyond what was asked for", zeroReader{}, 64 << 20, Options{MaxBytes: 1 << 20}, "it unpacks to more than is allowed (--max-unpacked): 1048576 bytes", 1 << 20},
		{"a pattern beyond the ratio", patternReader{}, spare + 64<<20, Options{}, "bytes that are not zero, of", spare},
		{"a pattern that was asked for", patternReader{}, spare + 64<<20, Options{MaxBytes: 2 * spare}, "", spare + 64<<20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.size > spare {
				t.Skip("it writes a gigabyte")
			}
			cmd := exec.Command(oracle.Tool(t, "zstd"), "-c")
			cmd.Stdin = io.LimitReader(tt.of, tt.size)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			in, err := Open(write(t, packed), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Mapping.Close()
			said := strings.Join(in.Problems, "\n")
			if n := len(in.Mapping.Data()); n < tt.got || n > tt.got+64<<20 || !strings.Contains(said, tt.want) || (said == "") != (tt.want == "") {
				t.Errorf("%d packed bytes: %d bytes, expected about %d; problems %q", len(packed), n, tt.got, said)
			}
		})
	}
}

// TestFullDisksAreNamed: nobody asked for the bound, so the error says where it comes from.
func TestFullDisksAreNamed(t *testing.T) {
	f, err := Nameless(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &spool{sink: &temporary{File: f}, maxSize: DefaultMaxBytes, maxStored: DefaultMaxBytes}
	s.bound("in /full", 4096)
	want := "it unpacks to more than is allowed (--max-unpacked): 2048 bytes that are not zero, of 300 packed bytes, are half of the 4096 that are free in /full"
	if err := s.add(bytes.Repeat([]byte("x"), 3000), 300); err == nil || err.Error() != want {
		t.Errorf("%v, expected %q", err, want)
	}
}

// TestDictionariesAreBounded: a block may ask for 4 GiB, and many blocks for much together.
func TestDictionariesAreBounded(t *testing.T) {
	packed := pack(t, []byte("text"), "xz", "-c", "--lzma2=dict=1GiB")
	if _, err := Open(write(t, packed), Options{}); err == nil || !strings.Contains(err.Error(), "dictionary of 1073741824 bytes, expected at most") {
		t.Error(err)
	}
	many := pack(t, bytes.Repeat([]byte("x"), 400), "xz", "-c", "--lzma2=dict=64MiB", "--block-size=1")
	in, err := Open(write(t, many), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Mapping.Close()
	if len(in.Problems) != 1 || !strings.Contains(in.Problems[0], "dictionaries of") {
		t.Errorf("%d bytes; problems %v", len(in.Mapping.Data()), in.Problems)
	}
	window := pack(t, []byte("text"), "zstd", "-c", "--ultra", "--long=31")
	if _, err := Open(write(t, window), Options{}); err == nil || !strings.Contains(err.Error(), "window") {
		t.Error(err)
	}
}

func TestEmptyAndNoFile(t *testing.T) {
	for _, data := range [][]byte{nil, pack(t, nil, "gzip", "-c"), pack(t, nil, "xz", "-c"), pack(t, nil, "zstd", "-c"), pack(t, nil, "lz4", "-c")} {
		if _, err := Open(write(t, data), Options{}); err == nil || !strings.Contains(err.Error(), object.ErrEmpty.Error()) {
			t.Errorf("%x: %v", data, err)
		}
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := oracle.Mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, t.TempDir(), "/dev/null"} {
		if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), object.ErrNotRegular.Error()) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// crash is a report as apport's problem_report.py writes them: text first, values of
// several lines on lines of their own, and each chunk of what is packed a line in base64.
func crash(chunks [][]byte, after string) []byte {
	var b bytes.Buffer
	b.WriteString("ProblemType: Crash\nDate: Mon Nov 23 18:00:00 2026\nDistroRelease: Ubuntu 24.04\nExecutablePath: /usr/sbin/named\n" +
		"ProcCmdline: /usr/sbin/named -f -u bind\nProcMaps:\n 00400000-00401000 r-xp /usr/sbin/named\n 00401000-00402000 r--p /usr/sbin/named\nSignal: 11\nUname: Linux 6.8.0-45-generic x86_64\n")
	b.WriteString("Icon: base64\n H4sICAAAAAAC\n /w==\nCoreDump: base64\n")
	for _, c := range chunks {
		fmt.Fprintf(&b, " %s\n", base64.StdEncoding.EncodeToString(c))
	}
	b.WriteString(after)
	return b.Bytes()
}

// chunked cuts as apport does: the header of gzip, then what each megabyte packs to.
func chunked(packed []byte, size int) (list [][]byte) {
	list = append(list, packed[:10])
	for rest := packed[10:]; len(rest) > 0; {
		n := min(size, len(rest))
		list, rest = append(list, rest[:n]), rest[n:]
	}
	return list
}

func packedCores(t testing.TB, want []byte) map[string][]byte {
	var g, z bytes.Buffer
	w := gzip.NewWriter(&g)
	_, _ = w.Write(want)
	w.Close()
	l := zlib.NewWriter(&z)
	_, _ = l.Write(want)
	l.Close()
	return map[string][]byte{"gzip": g.Bytes(), "zlib": z.Bytes(), "zstd": pack(t, want, "zstd", "-c")}
}

func TestReports(t *testing.T) {
	want := contents()
	for name, packed := range packedCores(t, want) {
		for _, size := range []int{1, 7, 1000, 1 << 20} {
			if size < 1000 && name != "gzip" {
				continue
			}
			in := opened(t, crash(chunked(packed, size), "UserGroups: adm\nAfter: base64\n AAAA\n"), want)
			labels := map[string]string{}
			for _, l := range in.Labels {
				labels[l.Name] = l.Value
			}
			if len(in.Problems) > 0 || labels["ExecutablePath"] != "/usr/sbin/named" || labels["UserGroups"] != "adm" ||
				labels["ProcMaps"] != "00400000-00401000 r-xp /usr/sbin/named\n00401000-00402000 r--p /usr/sbin/named" || len(labels) != 9 {
				t.Errorf("%s by %d: problems %v, labels %q", name, size, in.Problems, labels)
			}
		}
	}
	// A report may be packed itself, and have a Package in front.
	report := append([]byte("Package: bind9\n"), crash(chunked(packedCores(t, want)["gzip"], 1<<20), "")...)
	opened(t, pack(t, report, "gzip", "-c"), want)
}

func TestReportsThatAreNoUse(t *testing.T) {
	want := contents()
	packed := packedCores(t, want)["gzip"]
	whole := crash(chunked(packed, 1<<16), "")
	cut := whole[:len(whole)/2]
	in, err := Open(write(t, cut), Options{})
	if err != nil || len(in.Problems) != 1 || !strings.Contains(in.Problems[0], "the stream is cut") || !bytes.HasPrefix(want, in.Mapping.Data()) {
		t.Errorf("cut: %v %v", err, in)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"no core", "ProblemType: Package\nTitle: x\nLog: base64\n AAAA\n", "no field CoreDump: it is of the type Package, with 2 other fields"},
		{"nothing", "ProblemType: Crash", "no field CoreDump"},
		{"no base64", string(crash(nil, " $$$$\n")), "line 1 of CoreDump"},
		{"an odd line", string(crash(chunked(packed[:40], 30), " AAAAA\n")), "line 3 of CoreDump: its length is no multiple of 4"},
	} {
		in, err := Open(write(t, []byte(tt.text)), Options{})
		said := fmt.Sprint(err)
		if in != nil {
			said += strings.Join(in.Problems, "\n")
		}
		if !strings.Contains(said, tt.want) {
			t.Errorf("%s: %s", tt.name, said)
		}
	}
}

func TestHead(t *testing.T) {
	want := contents()
	for _, data := range [][]byte{want, pack(t, want, "xz", "-c"), crash(chunked(packedCores(t, want)["gzip"], 1<<20), "")} {
		head, err := Head(write(t, data))
		if err != nil || !bytes.HasPrefix(head, want[:64]) {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func TestAttributes(t *testing.T) {
	path := write(t, contents())
	if err := oracle.SetAttribute(path, "user.coredump.exe", "/usr/bin/sleep"); err != nil {
		oracle.Missing(t, "extended attributes: %v", err)
	}
	in, err := Open(path, Options{})
	if err != nil || len(in.Labels) != 1 || in.Labels[0] != (Label{"coredump.exe", "/usr/bin/sleep"}) {
		t.Errorf("%v %v", in, err)
	}
}

// FuzzOpen: whatever a stream is, opening it ends, with what it unpacks to within bounds.
func FuzzOpen(f *testing.F) {
	small := append([]byte("\x7fELF and then "), make([]byte, 10_000)...)
	for _, p := range packers {
		if _, err := exec.LookPath(p.tool); err == nil {
			f.Add(pack(f, small, p.tool, p.args...))
		}
	}
	if _, err := exec.LookPath("zstd"); err == nil {
		for _, packed := range packedCores(f, small) {
			f.Add(crash(chunked(packed, 64), "After: x\n"))
		}
	}
	f.Add([]byte("ProblemType: Crash\nCoreDump: base64\n"))
	f.Add([]byte("Package: x\nProblemType: Crash\nCoreDump: base64\n \n \nX\n"))
	path := filepath.Join(f.TempDir(), "target")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		const most = 8 << 20
		if in, err := Open(path, Options{MaxBytes: most}); err == nil {
			if n := len(in.Mapping.Data()); n > most && formatOf(data[:min(len(data), headSize)]) != nil {
				t.Errorf("%d bytes", n)
			}
			in.Mapping.Close()
		}
		_, _ = Head(path)
	})
}

// narrow is a Sink on a small disk.
type narrow struct {
	temporary
	free    int64
	dropped int
}

func (n *narrow) Free() (int64, string) { return n.free, "on a small disk" }

func (n *narrow) Drop() { n.dropped++ }

// TestASinkHasTheBoundsOfTheDisk: of a server, whose operator bounds what files unpack to, too.
func TestASinkHasTheBoundsOfTheDisk(t *testing.T) {
	path := write(t, pack(t, bytes.Repeat([]byte("x"), 1<<20), "gzip", "-c"))
	f, err := Nameless(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sink := &narrow{temporary: temporary{File: f}, free: 1 << 20}
	o := Options{MaxBytes: 1 << 40, Create: func() (Sink, error) { return sink, nil }}
	in, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Problems) != 1 || !strings.Contains(in.Problems[0], "are half of the 1048576 that are free on a small disk") {
		t.Errorf("%d bytes; problems %v", len(in.Mapping.Data()), in.Problems)
	}
	if sink.dropped != 0 {
		t.Error("the bytes were given up while they are mapped")
	}
	if err := in.Mapping.Close(); err != nil || sink.dropped != 1 {
		t.Errorf("given up %d times, expected once: %v", sink.dropped, err)
	}
	s, err := newSpool(Options{MaxBytes: 1 << 40, Create: func() (Sink, error) { return &narrow{free: 1 << 40}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(spare+ratio+1, 1); !errors.Is(err, errTooLarge) {
		t.Errorf("%d bytes of one: %v", spare+ratio+1, err)
	}
}

// TestARefusalIsNoPartOfATarget: where the server refuses bytes, opening fails, and what came before is not taken for the whole file.
func TestARefusalIsNoPartOfATarget(t *testing.T) {
	path := write(t, pack(t, bytes.Repeat([]byte("x"), 1<<20), "gzip", "-c"))
	f, err := Nameless(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sink := &refusing{narrow: narrow{temporary: temporary{File: f}, free: 1 << 40}}
	o := Options{Create: func() (Sink, error) { return sink, nil }}
	if in, err := Open(path, o); !errors.Is(err, ErrRefused) || sink.dropped != 1 {
		t.Errorf("%v, %v; given up %d times, expected once", in, err, sink.dropped)
	}
}

// refusing takes some bytes alone.
type refusing struct{ narrow }

func (r *refusing) WriteAt(b []byte, offset int64) (int, error) {
	if offset > 0 {
		return 0, ErrRefused
	}
	return r.narrow.WriteAt(b, offset)
}
