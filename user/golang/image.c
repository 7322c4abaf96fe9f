/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (256ULL << 10)
#define MAX_SECTIONS 4096

static bool read_piece(struct image *image, __u64 piece)
{
	__u64 at = piece * PIECE, end = at + PIECE < image->size ? at + PIECE : image->size;

	while (at < end) {
		ssize_t n = pread(image->fd, image->bytes + at, end - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (__u64)n;
	}
	return true;
}

/* `size` bytes at a place of the file, or NULL. */
static void *bytes_at(struct image *image, __u64 offset, __u64 size)
{
	if (offset > image->size || size > image->size - offset)
		return NULL;
	for (__u64 piece = offset / PIECE; piece * PIECE < offset + size; piece++) {
		if (!image->read[piece] && !read_piece(image, piece))
			return NULL;
		image->read[piece] = true;
	}
	return image->bytes + offset;
}

static const struct image_segment *segment_of(const struct image *image, __u64 address)
{
	for (unsigned int i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (address >= segment->address && address - segment->address < segment->size)
			return segment;
	}
	return NULL;
}

__u64 image_left(const struct image *image, __u64 address)
{
	const struct image_segment *segment = segment_of(image, address);

	return segment ? segment->size - (address - segment->address) : 0;
}

static void *place_of(struct image *image, __u64 address, __u64 size)
{
	const struct image_segment *segment = segment_of(image, address);

	if (!segment || size > segment->size - (address - segment->address))
		return NULL;
	return bytes_at(image, segment->offset + (address - segment->address), size);
}

const void *image_at(struct image *image, __u64 address, __u64 size)
{
	return place_of(image, address, size);
}

const char *image_text(struct image *image, __u64 address, size_t max)
{
	__u64 left = image_left(image, address);
	size_t size = left < max ? left : max;
	const char *text = size ? image_at(image, address, size) : NULL;

	return text && memchr(text, '\0', size) ? text : NULL;
}

bool image_u64(struct image *image, __u64 address, __u64 *out)
{
	const void *at = image_at(image, address, sizeof(*out));

	if (at)
		memcpy(out, at, sizeof(*out));
	return at;
}

__u64 image_code(const struct image *image)
{
	__u64 first = ~0ULL;

	for (unsigned int i = 0; i < image->n_segments; i++)
		if (image->segments[i].executable && image->segments[i].address < first)
			first = image->segments[i].address;
	return first;
}

void image_constants(const struct image *image, __u64 *from, __u64 *to)
{
	__u64 most = 0;

	*from = *to = 0;
	for (unsigned int i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (segment->writable || segment->executable || segment->size <= most)
			continue;
		most = segment->size;
		*from = segment->address;
		*to = segment->address + segment->size;
	}
}

bool image_code_offset(const struct image *image, __u64 address, __u64 *out)
{
	const struct image_segment *segment = segment_of(image, address);

	if (!segment || !segment->executable)
		return false;
	*out = segment->offset + (address - segment->address);
	return true;
}

static int read_header(struct image *image, Elf64_Ehdr *header, struct error *err)
{
	const void *at = bytes_at(image, 0, sizeof(*header));

	if (!at || memcmp(at, ELFMAG, SELFMAG) != 0)
		return error_set(err, -ENOEXEC, "not an ELF file");
	memcpy(header, at, sizeof(*header));
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64))
		return error_set(err, -ENOEXEC, "an ELF file for another machine (%u) than amd64 and arm64",
				 header->e_machine);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return error_set(err, -ENOEXEC, "an ELF file, but no program");
	image->machine = header->e_machine == EM_X86_64 ? IMAGE_AMD64 : IMAGE_ARM64;
	image->pie = header->e_type == ET_DYN;
	return 0;
}

static int add_segment(struct image *image, const Elf64_Phdr *phdr, struct error *err)
{
	if (image->n_segments == IMAGE_MAX_SEGMENTS)
		return error_set(err, -ENOEXEC, "an ELF file of more than %u segments", IMAGE_MAX_SEGMENTS);
	if (phdr->p_offset > image->size || phdr->p_filesz > image->size - phdr->p_offset ||
	    phdr->p_vaddr + phdr->p_filesz < phdr->p_vaddr)
		return error_set(err, -ENOEXEC, "an ELF file with a segment beyond its end: it is cut off");
	image->in_segments += phdr->p_filesz;
	if (image->in_segments > 2 * image->size)
		return error_set(err, -ENOEXEC, "an ELF file whose segments have the same bytes again and again");
	image->segments[image->n_segments++] = (struct image_segment){
		.address = phdr->p_vaddr,
		.offset = phdr->p_offset,
		.size = phdr->p_filesz,
		.writable = phdr->p_flags & PF_W,
		.executable = phdr->p_flags & PF_X,
	};
	return 0;
}

static int read_segments(struct image *image, const Elf64_Ehdr *header, Elf64_Phdr *dynamic, struct error *err)
{
	const void *at = bytes_at(image, header->e_phoff, (__u64)header->e_phnum * sizeof(Elf64_Phdr));

	if (!at || header->e_phentsize != sizeof(Elf64_Phdr))
		return error_set(err, -ENOEXEC, "an ELF file with damaged program headers");
	for (unsigned int i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr phdr;
		int ret;

		memcpy(&phdr, (const char *)at + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_DYNAMIC)
			*dynamic = phdr;
		if (phdr.p_type != PT_LOAD)
			continue;
		ret = add_segment(image, &phdr, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Where the relocations with addends are. */
static void find_relocations(struct image *image, const Elf64_Phdr *dynamic, __u64 *address, __u64 *size)
{
	for (__u64 i = 0; i + sizeof(Elf64_Dyn) <= dynamic->p_filesz; i += sizeof(Elf64_Dyn)) {
		const void *at = image_at(image, dynamic->p_vaddr + i, sizeof(Elf64_Dyn));
		Elf64_Dyn entry;

		if (!at)
			return;
		memcpy(&entry, at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			return;
		if (entry.d_tag == DT_RELA)
			*address = entry.d_un.d_ptr;
		if (entry.d_tag == DT_RELASZ)
			*size = entry.d_un.d_val;
	}
}

/* Those of RELR have their words in place already. */
static void relocate(struct image *image, const Elf64_Phdr *dynamic)
{
	__u32 relative = image->machine == IMAGE_AMD64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
	__u64 address = 0, size = 0;

	find_relocations(image, dynamic, &address, &size);
	for (__u64 i = 0; i + sizeof(Elf64_Rela) <= size; i += sizeof(Elf64_Rela)) {
		const void *at = image_at(image, address + i, sizeof(Elf64_Rela));
		Elf64_Rela rela;
		void *word;

		if (!at)
			return;
		memcpy(&rela, at, sizeof(rela));
		word = ELF64_R_TYPE(rela.r_info) == relative ? place_of(image, rela.r_offset, sizeof(__u64)) : NULL;
		if (word)
			memcpy(word, &rela.r_addend, sizeof(__u64));
	}
}

static int reserve(struct image *image, struct error *err)
{
	image->bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			    0);
	if (image->bytes == MAP_FAILED) {
		image->bytes = NULL;
		return error_set(err, -ENOMEM, "no memory");
	}
	image->read = calloc(image->size / PIECE + 1, sizeof(*image->read));
	return image->read ? 0 : error_set(err, -ENOMEM, "no memory");
}

static int read_image(struct image *image, struct error *err)
{
	Elf64_Phdr dynamic = { 0 };
	Elf64_Ehdr header = { 0 };
	int ret;

	ret = reserve(image, err) ?: read_header(image, &header, err) ?: read_segments(image, &header, &dynamic, err);
	if (!ret && image->pie)
		relocate(image, &dynamic);
	return ret;
}

int image_open(int fd, struct image *out, struct error *err)
{
	struct image image = { .fd = -1 };
	struct stat status;
	int ret;

	if (fstat(fd, &status))
		return error_set(err, -errno, "it cannot be read: %s", strerror(errno));
	if (!S_ISREG(status.st_mode) || !status.st_size)
		return error_set(err, -ENOEXEC, "not an ELF file");
	if ((__u64)status.st_size > IMAGE_MAX_SIZE)
		return error_set(err, -EFBIG, "larger than %llu bytes", IMAGE_MAX_SIZE);
	image.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (image.fd < 0)
		return error_set(err, -errno, "it cannot be read: %s", strerror(errno));
	image.size = (__u64)status.st_size;
	ret = read_image(&image, err);
	if (ret)
		image_close(&image);
	else
		*out = image;
	return ret;
}

void image_close(struct image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	if (image->bytes)
		munmap(image->bytes, image->size);
	free(image->read);
}

static bool section_at(struct image *image, const Elf64_Ehdr *header, unsigned int i, Elf64_Shdr *out)
{
	const void *at = bytes_at(image, header->e_shoff + (__u64)i * sizeof(*out), sizeof(*out));

	if (at)
		memcpy(out, at, sizeof(*out));
	return at;
}

static bool section_is(struct image *image, const Elf64_Shdr *names, const Elf64_Shdr *section, const char *name)
{
	size_t size = strlen(name) + 1;
	const void *at = bytes_at(image, names->sh_offset + section->sh_name, size);

	return at && !memcmp(at, name, size);
}

bool image_section(struct image *image, const char *name, __u64 *address, __u64 *size)
{
	Elf64_Shdr names, section;
	Elf64_Ehdr header;

	memcpy(&header, image->bytes, sizeof(header));
	if (header.e_shentsize != sizeof(section) || header.e_shnum > MAX_SECTIONS || header.e_shoff > image->size ||
	    !section_at(image, &header, header.e_shstrndx, &names) || names.sh_offset > image->size)
		return false;
	for (unsigned int i = 0; i < header.e_shnum && section_at(image, &header, i, &section); i++)
		if (section_is(image, &names, &section, name)) {
			*address = section.sh_addr;
			*size = section.sh_size;
			return true;
		}
	return false;
}
