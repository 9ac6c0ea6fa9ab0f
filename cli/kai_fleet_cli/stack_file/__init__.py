"""Stack files, `Pulumi.<stack>.yaml`: read, edited to the byte, written whole."""
