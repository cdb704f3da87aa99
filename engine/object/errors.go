// SPDX-License-Identifier: Apache-2.0

package object

import "errors"

var (
	// ErrNotELF is the error of bytes that do not begin as an ELF file.
	ErrNotELF = errors.New("not an ELF file")
	// ErrNotRegular is the error of a path that does not name a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrEmpty is the error of a file without bytes.
	ErrEmpty = errors.New("file is empty")
	// ErrFileShrank is the error of mapped bytes that were gone when they were read: the
	// file was cut, or the device under it failed.
	ErrFileShrank = errors.New("file shrank while it was mapped")
	// ErrNoSection is the error of a section that an object does not have.
	ErrNoSection = errors.New("no such section")
	// ErrNoData is the error of a section without bytes in the file (SHT_NOBITS).
	ErrNoData = errors.New("section has no bytes in the file")
	// ErrNoAddress is the error of an address in no segment of the object.
	ErrNoAddress = errors.New("address is not in the object")
	// ErrTooLarge is the error of contents that would unpack to more than the
	// file's size makes believable.
	ErrTooLarge = errors.New("unpacked data is too large")
)
