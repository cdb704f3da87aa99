// SPDX-License-Identifier: Apache-2.0

//go:build linux

package worker

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// piece returns a piece of an unpacked file.
func piece(offset uint64, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, offset)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...) //nolint:gosec // small
}

// errFull is the error of a full space.
var errFull = errors.New("full")

// spaceOf has a number of bytes.
func spaceOf(bytes int64) (s Space, used *atomic.Int64) {
	used = &atomic.Int64{}
	return Space{
		Take: func(n int64) error {
			if used.Add(n) > bytes {
				used.Add(-n)
				return errFull
			}
			return nil
		},
		Give: func(n int64) { used.Add(-n) },
	}, used
}

// sentTo sends bytes to a new file, and returns the file as a worker gets it.
func sentTo(t testing.TB, f *runFiles, number uint64, sent []byte) (*os.File, error) {
	t.Helper()
	made, write, err := f.begin(number)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = write.Write(sent) // nobody may read it
		_ = write.Close()
	}()
	if err := made.receive(); err != nil {
		return nil, err
	}
	return made.forReading()
}

// TestAWorkerUnpacksIntoAFileOfTheServer has holes where nothing was sent, and no way to write.
func TestAWorkerUnpacksIntoAFileOfTheServer(t *testing.T) {
	space, used := spaceOf(1 << 30)
	f := &runFiles{dir: t.TempDir(), most: 1 << 30, space: space}
	sent := append(append(piece(0, "head"), piece(1<<20, "tail")...), piece(1<<20+100, "")...)
	file, err := sentTo(t, f, 1, sent)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil || len(b) != 1<<20+100 || string(b[:5]) != "head\x00" || string(b[1<<20:1<<20+5]) != "tail\x00" {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if _, err := file.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a worker can write to the file")
	}
	if used.Load() != 2*blockSize {
		t.Errorf("%d bytes are counted, expected two blocks", used.Load())
	}
	f.drop(1)
	if info, err := file.Stat(); err != nil || info.Size() != 0 || used.Load() != 0 {
		t.Errorf("given up, it has %d bytes and counts as %d: %v", info.Size(), used.Load(), err)
	}
	if err := f.end(); err != nil {
		t.Error(err)
	}
	if _, _, err := f.begin(2); err == nil {
		t.Error("a run that has ended gets a file")
	}
}

// TestPiecesOfAStranger are refused: a worker may have been taken over.
func TestPiecesOfAStranger(t *testing.T) {
	for name, c := range map[string]struct {
		sent  []byte
		words string
	}{
		"behind the bound":   {piece(1<<20, "x"), "expected them behind"},
		"beyond 63 bits":     {piece(1<<63+5, "x"), "expected them behind"},
		"backwards":          {append(piece(8, "x"), piece(8, "x")...), "expected them behind"},
		"cut":                {piece(0, "xxxx")[:14], "EOF"},
		"without end":        {piece(0, "xxxx"), "breaks off"},
		"a size that shrank": {append(piece(0, "xxxx"), piece(2, "")...), "expected them behind"},
		"more than fits":     {append(piece(0, strings.Repeat("x", 5000)), piece(5000, "")...), "full"},
	} {
		space, used := spaceOf(4096)
		f := &runFiles{dir: t.TempDir(), most: 1 << 20, space: space}
		if file, err := sentTo(t, f, 1, c.sent); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, %v, expected %q", name, file, err, c.words)
		}
		if err := f.end(); used.Load() != 0 || (c.words == "full") != errors.Is(err, errFull) {
			t.Errorf("%s: %d bytes are left, the refusal is %v", name, used.Load(), err)
		}
	}
}

// FuzzPieces has a file made of any bytes: no more is written than is counted.
func FuzzPieces(f *testing.F) {
	f.Add(append(piece(0, "head"), piece(1<<19, "")...))
	f.Add(piece(1<<40, "x"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, sent []byte) {
		space, used := spaceOf(1 << 20)
		files := &runFiles{dir: dir, most: 1 << 20, space: space}
		if file, err := sentTo(t, files, 1, sent); err == nil {
			if info, err := file.Stat(); err != nil || info.Size() > 1<<20 {
				t.Errorf("%d bytes: %v", info.Size(), err)
			}
			_ = file.Close()
		}
		_ = files.end()
		if used.Load() != 0 {
			t.Errorf("%d bytes are left", used.Load())
		}
	})
}
