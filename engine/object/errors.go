// SPDX-License-Identifier: Apache-2.0

package object

import "errors"

var (
	// ErrNotELF says that the bytes do not begin as an ELF file does.
	ErrNotELF = errors.New("not an ELF file")
	// ErrNotRegular says that a path names something else than a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrEmpty says that a file has no bytes.
	ErrEmpty = errors.New("file is empty")
	// ErrFileShrank says that mapped bytes were gone when they were read: the
	// file was cut, or the device under it failed.
	ErrFileShrank = errors.New("file shrank while it was mapped")
	// ErrNoSection says that an object has no such section.
	ErrNoSection = errors.New("no such section")
	// ErrNoData says that a section has no bytes in the file (SHT_NOBITS).
	ErrNoData = errors.New("section has no bytes in the file")
	// ErrNoAddress says that an address lies in no segment of the object.
	ErrNoAddress = errors.New("address is not in the object")
	// ErrTooLarge says that unpacking would give more than the file's size
	// makes believable.
	ErrTooLarge = errors.New("unpacked data is too large")
)
