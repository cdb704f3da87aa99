// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// packedSections are sections of the same contents, packed in each way.
func packedSections(plain []byte) map[string]testSection {
	header := func(kind uint32) []byte {
		return chdr(elf.ELFCLASS64, binary.LittleEndian, kind, uint64(len(plain)))
	}
	return map[string]testSection{
		"zlib": {name: ".debug_info", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: append(header(compressZLIB), packZLIB(plain)...)},
		"zstd": {name: ".debug_info", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: append(header(compressZSTD), packZSTD(plain)...)},
		"old":  {name: ".zdebug_info", typ: elf.SHT_PROGBITS, data: append(binary.BigEndian.AppendUint64([]byte("ZLIB"), uint64(len(plain))), packZLIB(plain)...)},
		"none": {name: ".debug_info", typ: elf.SHT_PROGBITS, data: plain},
	}
}

func TestContentsAreThereAsFarAsTheyAreNeeded(t *testing.T) {
	plain := text(700_000)
	for name, section := range packedSections(plain) {
		t.Run(name, func(t *testing.T) {
			o := mustNew(t, testFile{sections: []testSection{section}}.bytes())
			c, err := o.Section(".debug_info").Contents()
			if err != nil {
				t.Fatal(err)
			}
			before := o.MemorySize()
			var workers sync.WaitGroup
			for seed := range uint64(4) {
				workers.Go(func() {
					random := rand.New(rand.NewPCG(seed, 0))
					for range 200 {
						end := random.IntN(300_000)
						if err := c.Need(uint64(end)); err != nil {
							t.Error(err)
						}
						if c.Ready() < uint64(end) || !bytes.Equal(c.Bytes()[:end], plain[:end]) {
							t.Errorf("the first %d bytes are others", end)
						}
					}
				})
			}
			workers.Wait()
			if name != "none" && c.Ready() > 500_000 {
				t.Errorf("%d bytes are there, of which 300000 were needed", c.Ready())
			}
			if grown := o.MemorySize() - before; name != "none" && grown != c.Ready() {
				t.Errorf("the object's memory grew by %d, %d bytes are there", grown, c.Ready())
			}
			all, err := o.Section(".debug_info").Data()
			if err != nil || !bytes.Equal(all, plain) || &all[0] != &c.Bytes()[0] {
				t.Errorf("Data gives %d bytes, error %v", len(all), err)
			}
			if err := c.Need(1 << 40); err != nil || c.Ready() != uint64(len(plain)) {
				t.Errorf("%d bytes are there, error %v", c.Ready(), err)
			}
		})
	}
}

// The part before the damage is what it was, and what is behind it an error each time.
func TestDamagedContentsEndWhereTheDamageIs(t *testing.T) {
	plain := make([]byte, 700_000) // stored: every byte is where it was
	random := rand.New(rand.NewPCG(5, 6))
	for i := range plain {
		plain[i] = byte(random.Uint32())
	}
	section := packedSections(plain)["zlib"]
	cut := section
	cut.data = section.data[:len(section.data)*2/3]
	wrong := section
	wrong.data = bytes.Clone(section.data)
	wrong.data[len(wrong.data)-1] ^= 1
	for name, test := range map[string]struct {
		section testSection
		says    string
	}{"cut": {cut, "unexpected EOF"}, "checksum": {wrong, "checksum"}} {
		t.Run(name, func(t *testing.T) {
			o := mustNew(t, testFile{sections: []testSection{test.section}}.bytes())
			c, err := o.Section(".debug_info").Contents()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Need(100_000); err != nil || !bytes.Equal(c.Bytes()[:100_000], plain[:100_000]) {
				t.Errorf("the beginning is not what it was: error %v", err)
			}
			for range 2 {
				err := c.Need(uint64(len(plain)))
				wantError(t, err, nil, test.says)
				wantError(t, err, nil, "section .debug_info (1): offset 0x40: ")
			}
			if b, err := o.Section(".debug_info").Data(); b != nil || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("Data gives %d bytes, error %v", len(b), err)
			}
			if err := c.Need(100_000); err != nil {
				t.Errorf("what was there is gone: %v", err)
			}
		})
	}
}

// A size that the packed bytes do not make plausible is not believed before they gave it.
func TestContentsOfAnImplausibleSizeAreUnpackedAtOnce(t *testing.T) {
	o := mustNew(t, testFile{sections: []testSection{packedSections(make([]byte, 4<<20))["zlib"]}}.bytes())
	c, err := o.Section(".debug_info").Contents()
	if err != nil || c.Ready() != 4<<20 {
		t.Fatalf("%d bytes are there, error %v", c.Ready(), err)
	}
	lying := testSection{name: ".debug_info", typ: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED,
		data: append(chdr(elf.ELFCLASS64, binary.LittleEndian, compressZLIB, 60<<20), packZLIB(text(1000))...)}
	o = mustNew(t, testFile{sections: []testSection{lying}}.bytes())
	_, err = o.Section(".debug_info").Contents()
	wantError(t, err, nil, "decompressed to 1000 bytes, expected 62914560")
}

func TestAFileThatIsCutUnderItsContentsIsAnError(t *testing.T) {
	plain := make([]byte, 700_000)
	random := rand.New(rand.NewPCG(7, 8))
	for i := range plain {
		plain[i] = byte(random.Uint32())
	}
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, testFile{sections: []testSection{packedSections(plain)["zlib"]}}.bytes())
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	c, err := o.Section(".debug_info").Contents()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 300_000); err != nil {
		t.Fatal(err)
	}
	if err := c.Need(100_000); err != nil {
		t.Error(err)
	}
	for range 2 {
		wantError(t, c.Need(600_000), ErrFileShrank, "section .debug_info")
	}
}
