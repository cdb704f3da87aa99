// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Unlimited is the value of a limit that allows everything.
const Unlimited = ^uint64(0)

// MaxThreads bounds the threads of a plugin. A Go program has some more than the machine has
// processors, a Java one a few hundred.
const MaxThreads = 1024

// ReportFD is the descriptor that a plugin's process reports its sandbox to.
const ReportFD = 3

// HashFile is the SHA-256 of a file in lower-case hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
