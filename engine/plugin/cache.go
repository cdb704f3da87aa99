// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/unwindd/unwindd/sdk"
)

// cacheFormat is the version of the cache's files. It is part of their names, as is the
// version of the protocol: entries of other versions are other files.
const cacheFormat = 3

// maxCacheEntry bounds the size of an entry that is read, in bytes.
const maxCacheEntry = 16 << 20

// descriptionCache keeps the descriptions of vendors' plugins by the SHA-256
// of their executables, so that a plugin runs only when a target needs it. An
// entry is a line with the SHA-256 of the rest, then the description as JSON.
type descriptionCache struct{ dir string } // "": nothing is kept

// openCache opens the user's cache. Without a directory that only the user may write to,
// nothing is kept; that costs one start of each plugin.
func openCache() descriptionCache {
	base, err := os.UserCacheDir()
	if err != nil {
		return descriptionCache{}
	}
	dir := filepath.Join(base, "unwindd", "plugins")
	if os.MkdirAll(dir, 0o700) != nil {
		return descriptionCache{}
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !isOwnedByUs(info) {
		return descriptionCache{}
	}
	if info.Mode().Perm() != 0o700 && os.Chmod(dir, 0o700) != nil {
		return descriptionCache{}
	}
	return descriptionCache{dir: dir}
}

func (c descriptionCache) file(k *kind, sum string) string {
	return filepath.Join(c.dir, fmt.Sprintf("%s-%d.%d.%d%s", sum, sdk.ProtocolVersion, sdk.Feature, cacheFormat, k.suffix))
}

// get is the description of an executable; nil where no complete and valid one is cached.
func (c descriptionCache) get(k *kind, sum string) description {
	if c.dir == "" {
		return nil
	}
	f, err := os.Open(c.file(k, sum))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCacheEntry))
	if err != nil {
		return nil
	}
	return decodeEntry(k, b)
}

// decodeEntry is the description in an entry; nil where it is incomplete or invalid.
func decodeEntry(k *kind, b []byte) description {
	check, body, ok := bytes.Cut(b, []byte("\n"))
	if !ok || string(check) != digest(body) {
		return nil
	}
	d, err := k.decode(body)
	if err != nil || d.Validate() != nil {
		return nil
	}
	return d
}

// put stores a description. An entry is complete or absent: it is renamed into place.
func (c descriptionCache) put(k *kind, sum string, d description) error {
	if c.dir == "" {
		return nil
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, "new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	_, err = fmt.Fprintf(f, "%s\n%s", digest(body), body)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), c.file(k, sum))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
