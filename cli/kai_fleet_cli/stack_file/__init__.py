"""Stack files, `Pulumi.<stack>.yaml`: read, edited in place, written atomically."""
